// SPDX-License-Identifier: Apache-2.0

package console

// Names of the module and of objects. A budget has the name of its Deployment.
const (
	Name          = "console" // of the module, in the field owner, annotations, metrics and flags
	Namespace     = "openshift-console"
	ConsoleName   = "console"
	DownloadsName = "downloads"
	OperatorName  = "cluster" // the only Console of operator.openshift.io
)

func podLabels(name string) map[string]string {
	component := "ui"
	if name == DownloadsName {
		component = "downloads"
	}
	return map[string]string{"app": "console", "component": component}
}
