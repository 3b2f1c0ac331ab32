// SPDX-License-Identifier: Apache-2.0

// Package kubescheduler renders the static pod of kube-scheduler: the control loops of its operator in order, its
// configuration by scheduling profile, and the pod templates of both profiles.
//
// The service CA operator makes Secret serving-cert after the control plane runs. If the input does not have it in
// namespace openshift-kube-scheduler, kube-scheduler serves with a self-signed certificate.
//
// The sidecars of profile openshift have a client certificate instead of a token: see podtemplate.LoopbackKubeconfig.
package kubescheduler
