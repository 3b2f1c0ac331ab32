// Package allinone starts a minimal control plane without operators on the machine itself, and joins its kubelet.
package allinone
