// Package allinone starts a minimal control plane on the machine itself, as phases, and lets its kubelet join: no operators, and nothing
// that another machine has to do.
package allinone
