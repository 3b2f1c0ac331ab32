// Package kubecontrollermanager renders the static pod of kube-controller-manager: the control loops of its operator in order, its
// default configuration and observers, and the templates of the pod for both profiles.
//
// Certificates come first of all components': kube-apiserver trusts the CA that signs the kubelets' certificates, and the keys of
// ServiceAccount tokens. Steps follow kube-apiserver's, whose operator makes kube-controller-manager's client certificate and the
// bundles.
//
// The Secret serving-cert is made by the service CA operator, which does not run before the control plane does. Without it
// kube-controller-manager and cluster-policy-controller serve with a certificate that they sign themselves when they start. An
// input that has the Secret in namespace openshift-kube-controller-manager is used.
//
// The sidecars of profile openshift have a client certificate where the stock operator gives them a token: see
// podtemplate.LoopbackKubeconfig.
package kubecontrollermanager
