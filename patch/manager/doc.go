// Package manager is the process around the controllers of one or more modules: flags, caches that hold only the few objects
// the modules ask for, secure metrics, probes, events, and leader election whose durations follow the topology.
//
// It waits for what is not there yet. A cluster without OpenShift's resources, or whose API server is still starting, is
// not an error: the process says what it waits for, is alive but not ready, and goes on when it appears.
package manager
