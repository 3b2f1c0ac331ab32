// Package create puts together the Ignition configs of an installation: that of the live system which bootstraps in place, with what the
// installed node gets besides, and that of an all-in-one node.
package create
