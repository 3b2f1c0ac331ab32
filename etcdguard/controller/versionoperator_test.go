package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// versionOperator does what the cluster-version-operator of a release before 4.8 does as far as the guard is concerned: it says
// which ClusterVersion it works with, and writes both parts of the guard as its manifests have them, by Update, unless the overrides
// that it has seen say that they are unmanaged. What it has seen may be old.
type versionOperator struct {
	*cluster
	client client.Client
	seen   []configv1.ComponentOverride
	// away tells that there is no ClusterVersion, and so no such operator.
	away bool
	// defaulted are the manifests with what the API server fills in.
	deployment appsv1.DeploymentSpec
	budget     policyv1.PodDisruptionBudgetSpec
}

var versionOperators = map[*patchtest.APIServer]client.Client{}

func (c *cluster) versionOperator() *versionOperator {
	c.Helper()
	if versionOperators[c.server] == nil {
		versionOperators[c.server] = c.server.Client(c, cvo, "system:masters")
	}
	d, b := manifest(), manifestBudget()
	c.must(client.IgnoreAlreadyExists(c.admin.Create(c.Context(), renamed(d), client.DryRunAll)))
	c.must(client.IgnoreAlreadyExists(c.admin.Create(c.Context(), renamed(b), client.DryRunAll)))
	return &versionOperator{cluster: c, client: versionOperators[c.server], deployment: d.Spec, budget: b.Spec}
}

func renamed[T client.Object](o T) T {
	o.SetName("dry-run")
	return o
}

// act is one round, and reports whether it wrote the guard.
func (o *versionOperator) act() bool {
	o.Helper()
	o.must(o.observe(o.Context()))
	wrote, err := o.sync(o.Context())
	o.must(err)
	return wrote
}

// observe reads the ClusterVersion and says so in its status. What somebody writes at the same time wins; the next round sees it.
func (o *versionOperator) observe(ctx context.Context) error {
	v := &configv1.ClusterVersion{}
	err := o.client.Get(ctx, versionObject.Key(), v)
	if o.away = apierrors.IsNotFound(err); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.seen = v.Spec.Overrides
	if v.Status.ObservedGeneration == v.Generation && len(v.Status.History) > 0 {
		return nil
	}
	v.Status = configv1.ClusterVersionStatus{ObservedGeneration: v.Generation, VersionHash: "hash",
		Desired: configv1.Release{Version: "4.7.0", Image: "release"}, AvailableUpdates: []configv1.Release{}}
	v.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.7.0", Image: "release",
		StartedTime: v.CreationTimestamp, CompletionTime: &v.CreationTimestamp}}
	return ignoreRace(o.client.Status().Update(ctx, v, client.FieldOwner(cvo)))
}

func (o *versionOperator) manages(kind, group string) bool {
	return !o.away && !slices.Contains(o.seen, configv1.ComponentOverride{Kind: kind, Group: group, Namespace: namespace, Name: guardName, Unmanaged: true})
}

// sync makes the guard what the manifests say.
func (o *versionOperator) sync(ctx context.Context) (wrote bool, err error) {
	owner := client.FieldOwner(cvo)
	if o.manages("Deployment", "apps") {
		want, have := manifest(), &appsv1.Deployment{}
		switch err := o.client.Get(ctx, deploymentObject.Key(), have); {
		case apierrors.IsNotFound(err):
			if err := o.client.Create(ctx, want, owner); err != nil {
				return wrote, ignoreRace(err)
			}
			wrote = true
		case err != nil:
			return wrote, err
		case !equality.Semantic.DeepEqual(have.Spec, o.deployment) || !has(have.Annotations, want.Annotations):
			have.Spec, have.Annotations = o.deployment, merged(have.Annotations, want.Annotations)
			if err := o.client.Update(ctx, have, owner); err != nil {
				return wrote, ignoreRace(err)
			}
			wrote = true
		}
	}
	if o.manages("PodDisruptionBudget", "policy") {
		want, have := manifestBudget(), &policyv1.PodDisruptionBudget{}
		switch err := o.client.Get(ctx, budgetObject.Key(), have); {
		case apierrors.IsNotFound(err):
			if err := o.client.Create(ctx, want, owner); err != nil {
				return wrote, ignoreRace(err)
			}
			wrote = true
		case err != nil:
			return wrote, err
		case !equality.Semantic.DeepEqual(have.Spec, o.budget) || !has(have.Annotations, want.Annotations):
			have.Spec, have.Annotations = o.budget, merged(have.Annotations, want.Annotations)
			if err := o.client.Update(ctx, have, owner); err != nil {
				return wrote, ignoreRace(err)
			}
			wrote = true
		}
	}
	return wrote, nil
}

func has(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

func merged(have, want map[string]string) map[string]string {
	out := map[string]string{}
	for _, from := range []map[string]string{have, want} {
		for key, value := range from {
			out[key] = value
		}
	}
	return out
}

// ignoreRace is for a write that somebody else was faster than, and for an object that is gone: the next round sees it.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// work lets it and the Deployment controller act again and again until the returned function is called. While the API server is away
// it tries again.
func (o *versionOperator) work() (stop func()) {
	ctx, cancel := context.WithCancel(o.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) { // the context ends it
			err := o.observe(ctx)
			if err == nil {
				_, err = o.sync(ctx)
			}
			var refused apierrors.APIStatus
			if errors.As(err, &refused) && ctx.Err() == nil && apierrors.IsInvalid(err) {
				o.Errorf("the cluster-version-operator: %v", err)
			}
			return false, nil
		})
	}()
	return func() { cancel(); <-done }
}

const releaseAnnotation = "include.release.openshift.io/self-managed-high-availability"

// manifest is the Deployment of a release before 4.8 (U-ETC-5), in the form that its successor kept (U-ETC-6).
func manifest() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: guardName, Annotations: map[string]string{releaseAnnotation: "true"}}}
	d.Spec.Replicas = ptr.To[int32](3)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": guardName}}
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0))}}
	d.Spec.Template.Labels = map[string]string{"k8s-app": guardName, "name": guardName}
	d.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-cluster-critical", TerminationGracePeriodSeconds: ptr.To[int64](3),
		NodeSelector: map[string]string{masterLabel: ""},
		Tolerations:  []corev1.Toleration{{Key: masterLabel, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k8s-app", Operator: "In", Values: []string{guardName}}}},
		}}}},
		Containers: []corev1.Container{{
			Name: "guard", Image: "cli", Command: []string{"/bin/bash"}, Args: []string{"-c", "sleep infinity & wait"},
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "curl"}}},
				InitialDelaySeconds: 5, PeriodSeconds: 5, TimeoutSeconds: 3},
			VolumeMounts: []corev1.VolumeMount{{Name: "client", MountPath: "/mnt/client"}},
		}},
		Volumes: []corev1.Volume{{Name: "client", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "etcd-client"}}}},
	}
	return d
}

func manifestBudget() *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: guardName, Annotations: map[string]string{releaseAnnotation: "true"}}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": guardName}}
	return b
}
