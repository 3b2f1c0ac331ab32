// SPDX-License-Identifier: Apache-2.0

package versionoperator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifest is an object of the release.
type Manifest struct {
	key         client.ObjectKey
	kind, group string
	object      func() client.Object
	// enforce sets the fields of the manifest in the live object, leaves others, and reports whether it changed anything.
	enforce func(live client.Object) bool
}

// manifest returns the manifest of an object, of which set enforces fields.
func manifest[T client.Object](kind, group string, object func() T, set func(live, want T)) Manifest {
	return Manifest{
		key: client.ObjectKeyFromObject(object()), kind: kind, group: group,
		object: func() client.Object { return object() },
		enforce: func(live client.Object) bool {
			typed, ok := live.(T)
			if !ok {
				return false
			}
			before := live.DeepCopyObject()
			set(typed, object())
			return !equality.Semantic.DeepEqual(before, live)
		},
	}
}

// Whole returns a manifest of which annotations and the whole spec are enforced, with the defaults of the API server.
// It creates the object in a dry run to get them.
func Whole(ctx context.Context, kube client.Client, object client.Object) (Manifest, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return Manifest{}, err
	}
	wanted := &unstructured.Unstructured{Object: content}
	kind, err := kube.GroupVersionKindFor(object)
	if err != nil {
		return Manifest{}, err
	}
	wanted.SetGroupVersionKind(kind)
	defaulted := wanted.DeepCopy()
	defaulted.SetName(wanted.GetName() + "-dry-run")
	if err := kube.Create(ctx, defaulted, client.DryRunAll); err != nil {
		return Manifest{}, fmt.Errorf("create %s in a dry run: %w", wanted.GetName(), err)
	}
	wanted.Object["spec"] = defaulted.Object["spec"]
	return Manifest{
		key: client.ObjectKeyFromObject(wanted), kind: kind.Kind, group: kind.Group,
		object: func() client.Object { return wanted.DeepCopy() },
		enforce: func(live client.Object) bool {
			u, ok := live.(*unstructured.Unstructured)
			if !ok {
				return false
			}
			before := u.DeepCopy()
			u.SetAnnotations(labels.Merge(u.GetAnnotations(), wanted.GetAnnotations()))
			u.Object["spec"] = wanted.DeepCopy().Object["spec"]
			return !equality.Semantic.DeepEqual(before.Object["spec"], u.Object["spec"]) || !maps.Equal(before.GetAnnotations(), u.GetAnnotations())
		},
	}, nil
}

// Downloads is the downloads server of the console.
var Downloads = manifest("Deployment", appsv1.GroupName, downloads, enforceDownloads)

var downloadsKey = client.ObjectKey{Namespace: "openshift-console", Name: "downloads"}

func (m Manifest) override() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: m.kind, Group: m.group, Namespace: m.key.Namespace, Name: m.key.Name, Unmanaged: true}
}

// downloads is the Deployment in the release: two pods on different nodes, on any schedulable node that runs Linux,
// whatever the topology is. It sets no rolling update.
func downloads() *appsv1.Deployment {
	labels := map[string]string{"app": "console", "component": "downloads"}
	const toleratedOutage = 120
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: downloadsKey.Namespace, Name: downloadsKey.Name, Labels: maps.Clone(labels)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelOSStable: string(corev1.Linux)},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
							LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}, TopologyKey: corev1.LabelHostname,
						}},
					}},
					Tolerations: []corev1.Toleration{
						{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
						{
							Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
							TolerationSeconds: ptr.To[int64](toleratedOutage),
						},
					},
					Containers: []corev1.Container{{
						Name: "download-server", Image: "downloads:1",
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
						}},
					}},
				},
			},
		},
	}
}

func enforceDownloads(live, want *appsv1.Deployment) {
	live.Spec.Replicas = want.Spec.Replicas
	pod, wanted := &live.Spec.Template.Spec, want.Spec.Template.Spec
	pod.NodeSelector, pod.Affinity, pod.Tolerations = wanted.NodeSelector, wanted.Affinity, wanted.Tolerations
	for _, container := range wanted.Containers {
		at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == container.Name })
		if at < 0 {
			pod.Containers = append(pod.Containers, container)
			continue
		}
		present := &pod.Containers[at]
		present.Image, present.Ports, present.Resources = container.Image, container.Ports, container.Resources
	}
}
