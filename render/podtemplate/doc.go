// Package podtemplate has the pieces that the static pods of several components share: where an installer pod lays the files down,
// probes, kubeconfigs, and the ConfigMap that holds a pod.
//
// A pod is a template for all nodes: REVISION, NODE_NAME and NODE_ENVVAR_NAME in its text are replaced when it is laid down.
package podtemplate
