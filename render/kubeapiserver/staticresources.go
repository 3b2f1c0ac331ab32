package kubeapiserver

import "embed"

// Objects that are created first. kube-controller-manager approves renewals of kubelets' client certificates in profile
// kubernetes; in profile openshift the machine approver does. It never approves the first certificate: the bootstrap
// credentials do not prove the identity of a kubelet (R-APP-3).
//
//go:embed resources
var resources embed.FS
