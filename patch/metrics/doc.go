// Package metrics holds the sno_* metrics. They are registered by a constructor, never by an init function, so that a host
// which vendors a module decides whether and where they appear.
package metrics
