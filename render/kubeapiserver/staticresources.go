package kubeapiserver

import "embed"

// Objects that are there before anything else. In profile kubernetes kube-controller-manager renews client certificates of kubelets:
// who asks has one already. In profile openshift the approver of the machines does. The first certificate of a kubelet is approved by
// kube-controller-manager in neither: the credentials of the bootstrapper alone do not prove who asks (R-APP-3).
//
//go:embed resources
var resources embed.FS
