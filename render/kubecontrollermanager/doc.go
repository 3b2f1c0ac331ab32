// SPDX-License-Identifier: Apache-2.0

// Package kubecontrollermanager renders the static pod of kube-controller-manager: the control loops of its operator in
// order, its default configuration and observers, and the pod templates of both profiles.
//
// Certificates run before all other components, because kube-apiserver trusts their CA and keys. Steps run after
// kube-apiserver's, which make the client certificate and the bundles.
//
// The service CA operator makes Secret serving-cert after the control plane runs. If the input does not have it in
// namespace openshift-kube-controller-manager, kube-controller-manager and cluster-policy-controller serve with
// self-signed certificates.
//
// The sidecars of profile openshift have a client certificate instead of a token: see podtemplate.LoopbackKubeconfig.
package kubecontrollermanager
