package machineconfigserver

import _ "embed"

// Namespace is where it runs, and ConfigMap has the configs of its pools.
const (
	Namespace = "openshift-machine-config-operator"
	Name      = "machine-config-server"
	PoolsName = "machine-config-server-pools"
)

// Manifest runs the server on the node NODE, which has the program in /opt/check, with what the cluster has for it: its certificate, and the
// credentials of the bootstrapper.
//
//go:embed manifest.yaml
var Manifest string
