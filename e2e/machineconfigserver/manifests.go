// SPDX-License-Identifier: Apache-2.0

package machineconfigserver

import _ "embed"

// Namespace and Name are those of the server, and PoolsName is the ConfigMap with the configs of its pools.
const (
	Namespace = "openshift-machine-config-operator"
	Name      = "machine-config-server"
	PoolsName = "machine-config-server-pools"
)

// Manifest runs the server on node NODE, with the program in /opt/check, its certificate and the bootstrapper's
// credentials.
//
//go:embed manifest.yaml
var Manifest string
