// Package machineconfigserver stands in for the machine-config server of a running cluster (U-INS-17): it serves the config of a pool to machines
// that join, and adds the kubeconfig with which their kubelets ask for a certificate. As the real one does, it serves by TLS only, answers
// nothing but /config/POOL and /healthz, and looks at the spec versions that a client accepts. The real one makes the config of
// MachineConfigs and converts it to the client's spec, also to spec 2 for those that name none; this one has files of spec 3.2, and refuses
// older clients.
package machineconfigserver
