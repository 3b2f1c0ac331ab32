// SPDX-License-Identifier: Apache-2.0

// Package kubeapiserver has the control loops of kube-apiserver's operator and the pod templates of both profiles
// (R-REN-6).
//
// What the operator keeps in its own repository is implemented here as pure functions: the observers return parts of
// KubeAPIServerConfig, and Flags converts the merged configuration to flags of the upstream kube-apiserver.
//
// Two things differ from the operator. The sidecars' kubeconfig has the client certificate of the node's administrator
// instead of a service account token, because a token contains the ServiceAccount's uid, which only a running API
// server assigns. There is also a client certificate for joining kubelets, which the installer signs otherwise.
//
// In profile kubernetes kube-controller-manager approves renewals of kubelets' client certificates; in profile
// openshift the machine approver does. It never approves the first certificate: the bootstrap credentials do not prove
// the identity of a kubelet.
package kubeapiserver
