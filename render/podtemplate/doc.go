// SPDX-License-Identifier: Apache-2.0

// Package podtemplate has the common parts of the static pods: paths, probes, kubeconfigs, and the ConfigMap of a pod.
//
// A pod is a template for all nodes: REVISION, NODE_NAME and NODE_ENVVAR_NAME are replaced when it is installed.
package podtemplate
