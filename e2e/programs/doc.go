// Package programs builds the repository's own programs, so that they can be run as processes beside an embedded cluster.
package programs
