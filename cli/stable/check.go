// SPDX-License-Identifier: Apache-2.0

package stable

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/pages"
)

const (
	pageSize    = 500
	readTimeout = time.Minute // an API server that stops leaves requests unanswered
	maxMessage  = 160         // characters of a condition's message
	requestKind = "CertificateSigningRequest"
)

// Report is the result of one check. Notes and kinds that are not served do not count as unstable.
type Report struct {
	Unstable   []UnstableObject `json:"unstable,omitempty"`
	Unreadable []UnreadableKind `json:"unknown,omitempty"`
	NotServed  []string         `json:"notServed,omitempty"`
	Notes      []string         `json:"notes,omitempty"`
	// Fingerprints are values by object that never return to a former one, so that a change between two checks is found.
	Fingerprints map[string]string `json:"-"`
}

// UnstableObject is an object that is not stable. Since is when that began, or when it was first read if the object
// does not record it.
type UnstableObject struct {
	Object   string      `json:"object"`
	WaitsFor string      `json:"waitsFor"`
	Since    metav1.Time `json:"since"`
}

func (o UnstableObject) String() string { return o.Object + ": " + o.WaitsFor }

// UnreadableKind is a kind that could not be read.
type UnreadableKind struct {
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

func (u UnreadableKind) String() string { return u.Kind + ": cannot be read: " + u.Error }

// IsStable reports whether everything was read and is stable.
func (r *Report) IsStable() bool { return len(r.Unstable) == 0 && len(r.Unreadable) == 0 }

// Check reads the cluster once.
func Check(ctx context.Context, from client.Reader) Report {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	report := Report{Fingerprints: map[string]string{}}
	r := reading{ctx: ctx, client: from, report: &report}
	desired := ""
	each(r, configv1.GroupVersion.WithKind("ClusterVersion"), true, func(r reading, version *configv1.ClusterVersion) {
		desired = version.Status.Desired.Version
		clusterVersion(r, version)
	})
	each(r, configv1.GroupVersion.WithKind("ClusterOperator"), true, func(r reading, operator *configv1.ClusterOperator) {
		clusterOperator(r, operator, desired)
	})
	// A cluster with an external control plane may serve pools and have none.
	each(r, mcfgv1.GroupVersion.WithKind("MachineConfigPool"), false, pool)
	each(r, corev1.SchemeGroupVersion.WithKind("Node"), true, node)
	each(r, certificatesv1.SchemeGroupVersion.WithKind(requestKind), false, request)
	each(r, appsv1.SchemeGroupVersion.WithKind("Deployment"), false, deployment)
	each(r, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), false, daemonSet)
	each(r, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), false, statefulSet)
	// The static pods of the API server (openshift/cluster-kube-apiserver-operator,
	// bindata/assets/kube-apiserver/pod.yaml).
	each(r, corev1.SchemeGroupVersion.WithKind("Pod"), false, apiServer,
		client.InNamespace("openshift-kube-apiserver"), client.MatchingLabels{"app": "openshift-kube-apiserver"})
	return report
}

type reading struct {
	ctx    context.Context
	client client.Reader
	report *Report
	name   string
	metav1.ObjectMeta
	conditions []metav1.Condition
}

// each calls check for all objects of the kind after reading all of them. Every cluster has an object of a needed kind.
func each[T any](r reading, gvk schema.GroupVersionKind, needed bool, check func(reading, *T), options ...client.ListOption) {
	var all []func()
	err := pages.Each(r.ctx, func(ctx context.Context, at string) (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := r.client.List(ctx, list, append(options, client.Limit(pageSize), client.Continue(at))...); err != nil {
			return "", err
		}
		for _, u := range list.Items {
			var object T
			var common struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
				Status   struct {
					Conditions []metav1.Condition `json:"conditions"`
				} `json:"status"`
			}
			for _, into := range []any{&object, &common} {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
					return "", fmt.Errorf("decoding %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(&u), err)
				}
			}
			its := r
			its.ObjectMeta, its.conditions = common.Metadata, common.Status.Conditions
			its.name = gvk.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(&u).String(), "/")
			all = append(all, func() { check(its, &object) })
		}
		return list.GetContinue(), nil
	})
	r.name = gvk.Kind
	switch {
	case controller.IsNotServed(err) || apierrors.IsNotFound(err):
		r.report.NotServed = append(r.report.NotServed, gvk.Kind)
		r.report.Fingerprints["kind "+gvk.Kind] = "not served"
	case err != nil:
		r.report.Unreadable = append(r.report.Unreadable, UnreadableKind{Kind: gvk.Kind, Error: err.Error()})
	case needed && len(all) == 0:
		r.unstable(metav1.Time{}, "there is none yet")
	default:
		for _, check := range all {
			check()
		}
	}
}

func (r reading) unstable(since metav1.Time, format string, args ...any) {
	r.report.Unstable = append(r.report.Unstable, UnstableObject{Object: r.name, WaitsFor: fmt.Sprintf(format, args...), Since: since})
}

func (r reading) fingerprint(parts ...any) {
	r.report.Fingerprints[r.name] += fmt.Sprintln(append(parts, r.UID, r.Generation)...)
}

// condition returns a condition, or Unknown, and adds it to the fingerprint without its message.
func (r reading) condition(kind string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
	if i := slices.IndexFunc(r.conditions, func(c metav1.Condition) bool { return c.Type == kind }); i >= 0 {
		c = r.conditions[i]
	}
	r.fingerprint(kind, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339))
	return c
}

// require reports a condition with another status.
func (r reading) require(kind string, status metav1.ConditionStatus) {
	if c := r.condition(kind); c.Status != status {
		r.unstable(c.LastTransitionTime, "%s", describe(c))
	}
}

func describe(c metav1.Condition) string {
	text := c.Type + "=" + string(c.Status)
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	return strings.TrimSuffix(text+": "+firstLine(c.Message), ": ")
}

func firstLine(message string) string {
	line, _, more := strings.Cut(strings.TrimSpace(message), "\n")
	if runes := []rune(line); len(runes) > maxMessage {
		line, more = string(runes[:maxMessage]), true
	}
	if more {
		line += " ..."
	}
	return line
}

func clusterVersion(r reading, version *configv1.ClusterVersion) {
	r.fingerprint(version.Status.Desired.Version)
	if version.Generation != version.Status.ObservedGeneration {
		r.unstable(metav1.Time{}, "the cluster-version-operator has not observed its latest change")
	}
	r.require("Available", metav1.ConditionTrue)
	r.require("Progressing", metav1.ConditionFalse)
	if r.has("Failing") {
		r.require("Failing", metav1.ConditionFalse)
	}
	if history := version.Status.History; len(history) > 0 && history[0].State != configv1.CompletedUpdate {
		r.unstable(history[0].StartedTime, "the update to %s is not complete", history[0].Version)
	}
}

func clusterOperator(r reading, operator *configv1.ClusterOperator, desired string) {
	r.require("Available", metav1.ConditionTrue)
	r.require("Progressing", metav1.ConditionFalse)
	r.require("Degraded", metav1.ConditionFalse)
	version := ""
	for _, v := range operator.Status.Versions {
		if v.Name == "operator" {
			version = v.Version
		}
	}
	r.fingerprint(version)
	switch {
	case version == "":
		r.unstable(metav1.Time{}, "it has reported no version yet")
	case desired != "" && version != desired:
		r.unstable(metav1.Time{}, "it is at version %s, the desired version is %s", version, desired)
	}
}

func pool(r reading, pool *mcfgv1.MachineConfigPool) {
	r.fingerprint(pool.Spec.Configuration.Name)
	if degraded := r.condition("Degraded"); degraded.Status == metav1.ConditionTrue {
		r.unstable(degraded.LastTransitionTime, "%s", describe(degraded))
	}
	updating, updated := r.condition("Updating"), r.condition("Updated")
	switch {
	case pool.Generation != pool.Status.ObservedGeneration:
		r.unstable(metav1.Time{}, "the machine-config-operator has not observed its latest change")
	case updating.Status == metav1.ConditionTrue:
		r.unstable(updating.LastTransitionTime, "%d of %d nodes are updated", pool.Status.UpdatedMachineCount, pool.Status.MachineCount)
	case updated.Status == metav1.ConditionTrue:
	case pool.Spec.Paused: // no node restarts until a person resumes it
		r.report.Notes = append(r.report.Notes, r.name+": it is paused with an update pending")
	default:
		r.unstable(updated.LastTransitionTime, "%s", describe(updated))
	}
}

func node(r reading, node *corev1.Node) {
	// The boot ID also reveals a restart that was over before the node became not ready.
	r.fingerprint(node.Status.NodeInfo.BootID, node.Spec.Unschedulable)
	r.require("Ready", metav1.ConditionTrue)
	if node.Spec.Unschedulable {
		r.unstable(metav1.Time{}, "it is cordoned")
	}
	switch request, err := machineconfig.Requested(node.Annotations); {
	case err != nil:
		r.unstable(metav1.Time{}, "its request to the machine-config-operator cannot be parsed")
	case request != nil && request.Verb == machineconfig.VerbDrain:
		r.unstable(metav1.Time{}, "it is being drained")
	case request != nil:
		r.unstable(metav1.Time{}, "it waits to be uncordoned")
	}
	if node.Annotations[machineconfig.CurrentConfigAnnotation] != node.Annotations[machineconfig.DesiredConfigAnnotation] {
		r.unstable(metav1.Time{}, "its machine config is changing, which may restart it")
	}
}

// request skips requests of other clients, which may stay unapproved.
func request(r reading, request *certificatesv1.CertificateSigningRequest) {
	if s := request.Spec.SignerName; s != certificatesv1.KubeAPIServerClientKubeletSignerName && s != certificatesv1.KubeletServingSignerName {
		return
	}
	r.fingerprint()
	switch {
	case r.has(string(certificatesv1.CertificateDenied)), r.has(string(certificatesv1.CertificateFailed)), len(request.Status.Certificate) > 0:
	case r.has(string(certificatesv1.CertificateApproved)):
		r.unstable(request.CreationTimestamp, "it is approved and not signed yet")
	default:
		r.unstable(request.CreationTimestamp, "it is not approved; on a single node a person or an external tool must approve it")
	}
}

func (r reading) has(condition string) bool {
	return slices.ContainsFunc(r.conditions, func(c metav1.Condition) bool { return c.Type == condition })
}

// rollout follows kubectl rollout status, which fails for workloads that are updated by deleting pods.
type rollout struct {
	observed                      int64
	updated, wantUpdated          int32
	old, available, wantAvailable int32
}

// checkRollout skips namespaces of users, who may roll out workloads at any time.
func (r reading) checkRollout(o rollout, marks ...any) {
	if !strings.HasPrefix(r.Namespace, "openshift-") {
		return
	}
	r.fingerprint(marks...)
	waitsFor := ""
	switch {
	case o.observed < r.Generation:
		waitsFor = "its latest change is not observed yet"
	case o.updated < o.wantUpdated:
		waitsFor = fmt.Sprintf("%d of %d pods are updated", o.updated, o.wantUpdated)
	case o.old > 0:
		waitsFor = fmt.Sprintf("%d old pods still exist", o.old)
	case o.available < o.wantAvailable:
		waitsFor = fmt.Sprintf("%d of %d pods are available", o.available, o.wantAvailable)
	default:
		// This condition of a Deployment also records pods that were unavailable since the last check.
		r.condition(string(appsv1.DeploymentAvailable))
		return
	}
	r.unstable(metav1.Time{}, "%s", waitsFor)
}

func deployment(r reading, d *appsv1.Deployment) {
	replicas, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	r.checkRollout(rollout{s.ObservedGeneration, s.UpdatedReplicas, replicas, s.Replicas - s.UpdatedReplicas, s.AvailableReplicas, replicas},
		d.Annotations["deployment.kubernetes.io/revision"])
}

func daemonSet(r reading, d *appsv1.DaemonSet) {
	s := d.Status
	updated := s.DesiredNumberScheduled
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		updated = 0
	}
	r.checkRollout(rollout{s.ObservedGeneration, s.UpdatedNumberScheduled, updated, 0, s.NumberAvailable, s.DesiredNumberScheduled},
		s.DesiredNumberScheduled)
}

func statefulSet(r reading, d *appsv1.StatefulSet) {
	replicas, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	updated := replicas
	switch strategy := d.Spec.UpdateStrategy; {
	case strategy.Type == appsv1.OnDeleteStatefulSetStrategyType, s.UpdateRevision == s.CurrentRevision: // then none count as updated
		updated = 0
	case strategy.RollingUpdate != nil:
		updated -= ptr.Deref(strategy.RollingUpdate.Partition, 0)
	}
	r.checkRollout(rollout{s.ObservedGeneration, s.UpdatedReplicas, updated, 0, s.AvailableReplicas, replicas}, s.UpdateRevision)
}

// apiServer checks a static pod. On a single node each restart is an outage of up to two minutes (R-OPS-4).
func apiServer(r reading, pod *corev1.Pod) {
	restarts := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
	}
	r.fingerprint(restarts)
	r.require("Ready", metav1.ConditionTrue)
}
