// Package kubeapiserver has the control loops of kube-apiserver's operator, for a run in order over a store, and the pod that they
// end in (R-REN-6).
//
// Steps returns them: certificates, encryption, bound tokens, static resources, then config observation, target config and
// resource sync as one cycle until nothing changes, then the revision. What the operator keeps in its own repository is here as
// pure functions: the observers take the cluster's configuration and return a part of KubeAPIServerConfig, Flags turns the merged
// configuration into the flags of the plain kube-apiserver, and the pod of each profile is a Go value.
//
// Two things differ from the operator. The kubeconfig of the pod's sidecars has the client certificate of the control-plane
// node's administrator and no service account token: a token names the uid of its ServiceAccount, which only a running API
// server gives. And there is a client certificate for kubelets that join, which an installer would sign otherwise.
package kubeapiserver
