// Package engine finds the container engine of this machine and talks to it through its command-line client. It starts none: hack/engine does,
// when it is asked to.
package engine
