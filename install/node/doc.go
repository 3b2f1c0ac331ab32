// Package node is what a machine is told by the Ignition config that it boots from: its settings, and the paths that the phases of
// an installation use on it.
package node
