// Package files writes many files as one: all of them, or none.
package files
