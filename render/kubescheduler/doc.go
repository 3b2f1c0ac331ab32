// Package kubescheduler renders the static pod of kube-scheduler: the control loops of its operator in order, its configuration by
// scheduling profile, and the templates of the pod for both profiles.
//
// The Secret serving-cert is made by the service CA operator, which does not run before the control plane does. Without it
// kube-scheduler serves with a certificate that it signs itself when it starts. An input that has the Secret in namespace
// openshift-kube-scheduler is used.
//
// The sidecars of profile openshift have a client certificate where the stock operator gives them a token: see
// podtemplate.LoopbackKubeconfig.
package kubescheduler
