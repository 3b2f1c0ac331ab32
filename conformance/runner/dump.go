// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/conformance/catalogue"
)

// withheld replaces what may be secret in artifacts, which people attach to bug reports.
const withheld = "(withheld)"

// publicAnnotations matches annotations whose values are never secret.
var publicAnnotations = regexp.MustCompile(`^(deployment\.kubernetes\.io/revision|kubectl\.kubernetes\.io/restartedAt|([a-z]+\.)?sno\.solonode\.github\.io/.*|` +
	`machineconfiguration\.openshift\.io/(desiredConfig|currentConfig|state|desiredDrain|lastAppliedDrain|controlPlaneTopology)|release\.openshift\.io/.*)$`)

// withoutSecrets removes what may contain a secret on some cluster: variables, commands, most annotations, and the
// configuration of operators.
func withoutSecrets(s *catalogue.State) *catalogue.State {
	c := s.DeepCopy()
	metas := []*metav1.ObjectMeta{}
	for i := range c.Deployments {
		metas = append(metas, &c.Deployments[i].ObjectMeta, stripped(&c.Deployments[i].Spec.Template))
	}
	for i := range c.StatefulSets {
		metas = append(metas, &c.StatefulSets[i].ObjectMeta, stripped(&c.StatefulSets[i].Spec.Template))
	}
	for i := range c.DaemonSets {
		metas = append(metas, &c.DaemonSets[i].ObjectMeta, stripped(&c.DaemonSets[i].Spec.Template))
	}
	for i := range c.Pods {
		strip(&c.Pods[i].Spec)
		for _, statuses := range [][]corev1.ContainerStatus{c.Pods[i].Status.InitContainerStatuses, c.Pods[i].Status.ContainerStatuses} {
			for j := range statuses {
				withholdMessage(statuses[j].State.Terminated)
				withholdMessage(statuses[j].LastTerminationState.Terminated)
			}
		}
		metas = append(metas, &c.Pods[i].ObjectMeta)
	}
	for i := range c.Nodes {
		metas = append(metas, &c.Nodes[i].ObjectMeta)
	}
	for i := range c.Budgets {
		metas = append(metas, &c.Budgets[i].ObjectMeta)
	}
	nothing := runtime.RawExtension{}
	if o := c.Infrastructure; o != nil {
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.Ingress; o != nil {
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.ClusterVersion; o != nil {
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.IngressController; o != nil {
		o.Spec.UnsupportedConfigOverrides = nothing
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.Console; o != nil {
		o.Spec.ObservedConfig, o.Spec.UnsupportedConfigOverrides = nothing, nothing
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.Authentication; o != nil {
		o.Spec.ObservedConfig, o.Spec.UnsupportedConfigOverrides = nothing, nothing
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.Etcd; o != nil {
		o.Spec.ObservedConfig, o.Spec.UnsupportedConfigOverrides = nothing, nothing
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.Approver; o != nil {
		for key := range o.Data {
			if key != catalogue.ApproverFile {
				o.Data[key] = withheld
			}
		}
		o.BinaryData = nil
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.ControllerConfig; o != nil {
		metas = append(metas, &o.ObjectMeta)
	}
	if o := c.ApproverOperator; o != nil {
		o.Status.Extension = nothing
		metas = append(metas, &o.ObjectMeta)
	}
	for _, m := range metas {
		withholdAnnotations(m.Annotations)
	}
	for i := range c.KubeletConfigs {
		annotations := c.KubeletConfigs[i].GetAnnotations()
		withholdAnnotations(annotations)
		c.KubeletConfigs[i].SetAnnotations(annotations)
	}
	return c
}

func withholdAnnotations(annotations map[string]string) {
	for key := range annotations {
		if !publicAnnotations.MatchString(key) {
			annotations[key] = withheld
		}
	}
}

func withholdMessage(ended *corev1.ContainerStateTerminated) {
	if ended != nil && ended.Message != "" {
		ended.Message = withheld
	}
}

func stripped(template *corev1.PodTemplateSpec) *metav1.ObjectMeta {
	strip(&template.Spec)
	return &template.ObjectMeta
}

func strip(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	pod.EphemeralContainers = nil
	pod.Volumes = nil
}

// tokens matches secrets in any text, such as the message of an event: private keys, signed and opaque tokens of an API
// server, credentials of a registry.
var tokens = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|sha256~[A-Za-z0-9_-]{20,}|` +
	`(?i:(?:bearer|basic) +[A-Za-z0-9+/=._~-]{8,})|\\*"(?i:auth|password|token)\\*" *: *\\*"[^"\\]*`)

func redacted(text []byte) []byte { return tokens.ReplaceAll(text, []byte(withheld)) }
