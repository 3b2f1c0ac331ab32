// Package controlplanetest has what tests of a machine's own control plane begin with.
package controlplanetest
