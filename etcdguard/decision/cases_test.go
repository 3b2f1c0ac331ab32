// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

const cvo, stock, person, fieldOwner = "cluster-version-operator", "cluster-etcd-operator", "oc", "sno.solonode.github.io/etcdguard"

const (
	replicasJSON       = `{"f:spec":{"f:replicas":{}}}`
	maxUnavailableJSON = `{"f:spec":{"f:maxUnavailable":{}}}`
	staticGuardJSON    = `{"f:metadata":{"f:annotations":{}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:nodeSelector":{},` +
		`"f:containers":{"k:{\"name\":\"guard\"}":{".":{},"f:image":{}}}}}}}`
)

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == fieldOwner {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

func signed[O metav1.Object](object O, manager, fields string) O {
	object.SetManagedFields(append(object.GetManagedFields(), entry(manager, fields)))
	return object
}

func signedOnly[O metav1.Object](object O, manager, fields string) O {
	object.SetManagedFields(nil)
	return signed(object, manager, fields)
}

var releaseGuard, releaseBudget = decoded[appsv1.Deployment](0), decoded[policyv1.PodDisruptionBudget](1)

func decoded[T any](document int) (object T) {
	documents := strings.Split(string(fixture.Must(os.ReadFile("testdata/guard.yaml"))), "---\n")
	fixture.Must(0, yaml.Unmarshal([]byte(documents[document]), &object))
	return object
}

func staticGuard() *appsv1.Deployment { return signed(releaseGuard.DeepCopy(), cvo, staticGuardJSON) }

func staticBudget() *policyv1.PodDisruptionBudget {
	return signed(releaseBudget.DeepCopy(), cvo, maxUnavailableJSON)
}

// ourGuard and ourBudget are what the API server stores after the intent for n members was applied.
func ourGuard(mode configv1.TopologyMode, n int) *appsv1.Deployment {
	d := fixture.Must(etcdguard.Deployment(fixture.HostOf(mode, n)))
	return signed(d, fieldOwner, fieldsV1(d))
}

func ourBudget(mode configv1.TopologyMode, n int) *policyv1.PodDisruptionBudget {
	b := fixture.Must(etcdguard.DisruptionBudget(fixture.HostOf(mode, n)))
	return signed(b, fieldOwner, fieldsV1(b))
}

// fieldsV1 returns the managedFields of a client that applied the whole object.
func fieldsV1(object any) string {
	var value struct {
		Metadata struct{ Labels map[string]any }
		Spec     any
	}
	fixture.Must(0, json.Unmarshal([]byte(fixture.Text(object)), &value))
	fields := map[string]any{"spec": value.Spec}
	if labels := value.Metadata.Labels; labels != nil {
		fields["metadata"] = map[string]any{"labels": labels}
	}
	return fixture.Text(owned("", fields))
}

var (
	listKeys   = map[string]string{"containers": "name", "volumes": "name", "volumeMounts": "mountPath"}
	atomicMaps = []string{"nodeSelector", "matchLabels", "selector", "labelSelector"}
)

func owned(name string, value any) map[string]any {
	fields := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member != nil && !slices.Contains(atomicMaps, name) {
				fields["f:"+key] = owned(key, member)
			}
		}
	case []any:
		key, isMap := listKeys[name]
		for _, item := range value {
			if element, ok := item.(map[string]any); ok && isMap {
				inside := owned("", element)
				inside["."] = map[string]any{}
				fields[fmt.Sprintf(`k:{"%s":"%s"}`, key, element[key])] = inside
			}
		}
	}
	return fields
}

// version returns an observed ClusterVersion with these overrides and one for another object.
func version(overrides ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", UID: "cv", Generation: 3}}
	cv.Spec.Overrides = append([]configv1.ComponentOverride{
		{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true},
	}, overrides...)
	cv.Status.ObservedGeneration = 3
	return signed(cv, "cluster-bootstrap", `{"f:spec":{"f:clusterID":{},"f:overrides":{`+
		`"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"dns-operator\",\"namespace\":\"openshift-dns-operator\"}":{".":{}}}}}`)
}

const deployment, budget = "Deployment", "PodDisruptionBudget"

func guardEntry(kind string, unmanaged bool) configv1.ComponentOverride {
	group := map[string]string{deployment: "apps", budget: "policy"}[kind]
	return configv1.ComponentOverride{Kind: kind, Group: group, Namespace: "openshift-etcd", Name: "etcd-quorum-guard", Unmanaged: unmanaged}
}

// claimedBy returns an observed ClusterVersion with entries of the manager for the guard.
func claimedBy(manager string, unmanaged bool, kinds ...string) *configv1.ClusterVersion {
	var entries []configv1.ComponentOverride
	var elements []string
	for _, kind := range kinds {
		e := guardEntry(kind, unmanaged)
		entries = append(entries, e)
		elements = append(elements, fmt.Sprintf(`"k:{\"group\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"namespace\":\"%s\"}":{".":{},"f:unmanaged":{}}`,
			e.Group, e.Kind, e.Name, e.Namespace))
	}
	return signed(version(entries...), manager, `{"f:spec":{"f:overrides":{`+strings.Join(elements, ",")+`}}}`)
}

func claimed() *configv1.ClusterVersion { return claimedBy(fieldOwner, true, deployment, budget) }

func unobserved(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	cv.Generation++
	return cv
}

// with returns the inputs for n nodes with healthy members and the static guard.
func with(mode configv1.TopologyMode, n int, changes ...change) decision.Inputs {
	cluster := fixture.ClusterOf(mode)
	in := decision.Inputs{
		Cluster: &cluster, Nodes: fixture.NodesOf(mode, n), Members: fixture.MembersOf(n, n), ClusterVersion: version(),
		Deployment: staticGuard(), Budget: staticBudget(), ClientSecret: true, CABundle: true,
	}
	for _, f := range changes {
		f(&in)
	}
	return in
}

type change = func(*decision.Inputs)

func claimObserved(in *decision.Inputs)   { in.ClusterVersion = claimed() }
func claimUnobserved(in *decision.Inputs) { in.ClusterVersion = unobserved(claimed()) }
func noVersion(in *decision.Inputs)       { in.ClusterVersion = nil }
func claimOfOthers(in *decision.Inputs) {
	in.ClusterVersion = claimedBy(person, true, deployment, budget)
}
func conflictingEntry(in *decision.Inputs) { in.ClusterVersion = claimedBy(person, false, deployment) }
func force(in *decision.Inputs)            { in.ForceConflicts = true }
func image(in *decision.Inputs)            { in.Image = "other" }
func noDeployment(in *decision.Inputs)     { in.Deployment = nil }
func noBudget(in *decision.Inputs)         { in.Budget = nil }
func noGuard(in *decision.Inputs)          { in.Deployment, in.Budget = nil, nil }
func noMembers(in *decision.Inputs)        { in.Members = nil }
func noNodes(in *decision.Inputs)          { in.Nodes = nil }
func noCluster(in *decision.Inputs)        { in.Cluster = nil }
func noSecret(in *decision.Inputs)         { in.ClientSecret = false }
func noBundle(in *decision.Inputs)         { in.CABundle = false }

func noRoles(in *decision.Inputs) {
	in.Nodes = []corev1.Node{fixture.Node("a", "worker"), {}, fixture.Node("c", "worker")}
}
func versionUnobserved(in *decision.Inputs) { unobserved(in.ClusterVersion) }
func released(in *decision.Inputs) {
	signedOnly(in.Deployment, fieldOwner+"-released", staticGuardJSON)
}
func oneEntry(in *decision.Inputs)      { in.ClusterVersion = version(guardEntry(deployment, true)) }
func ourDeployment(in *decision.Inputs) { in.Deployment = ourGuard(topologytest.HA, 5) }
func smallBudget(in *decision.Inputs)   { in.Budget = ourBudget(topologytest.HA, 3) }

func members(n, healthy int) change {
	return func(in *decision.Inputs) { in.Members = fixture.MembersOf(n, healthy) }
}

func ours(mode configv1.TopologyMode, n int) change {
	return func(in *decision.Inputs) { in.Deployment, in.Budget = ourGuard(mode, n), ourBudget(mode, n) }
}

func minAvailable(n string) change {
	return func(in *decision.Inputs) {
		in.Budget.Spec.MaxUnavailable, in.Budget.Spec.MinAvailable = nil, ptr.To(intstr.Parse(n))
	}
}

func maxUnavailable(n string) change {
	return func(in *decision.Inputs) { in.Budget.Spec.MaxUnavailable = ptr.To(intstr.Parse(n)) }
}

func alwaysAllow(in *decision.Inputs) {
	in.Budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func deletedBudget(in *decision.Inputs)     { in.Budget.DeletionTimestamp = &metav1.Time{} }
func deletedDeployment(in *decision.Inputs) { in.Deployment.DeletionTimestamp = &metav1.Time{} }
func otherContainer(in *decision.Inputs)    { in.Deployment.Spec.Template.Spec.Containers[0].Name = "x" }

func otherSelector(in *decision.Inputs) { in.Budget.Spec.Selector.MatchLabels["k8s-app"] = "x" }

func stockGuard(in *decision.Inputs) {
	signed(in.Deployment, stock, replicasJSON)
	signed(in.Budget, stock, maxUnavailableJSON)
}

func scaled(in *decision.Inputs) {
	in.Deployment.Spec.Replicas = ptr.To[int32](1)
	signed(in.Deployment, person, replicasJSON)
}

func optOut(in *decision.Inputs) {
	in.ClusterVersion.Annotations = map[string]string{"sno.solonode.github.io/opt-out": "etcdguard"}
}

func operatorGuard(in *decision.Inputs) {
	in.PodsBudget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
	in.PodsBudget.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 4, CurrentHealthy: 5}
}

func conditions(types ...string) change {
	return func(in *decision.Inputs) {
		in.Etcd = &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		for _, condition := range types {
			in.Etcd.Status.Conditions = append(in.Etcd.Status.Conditions, operatorv1.OperatorCondition{Type: condition, Status: operatorv1.ConditionFalse})
		}
	}
}

func deploymentStatus(replicas, updated, available int32, progressing string) change {
	return func(in *decision.Inputs) {
		in.Deployment.Generation = 4
		in.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available}
		if progressing != "" {
			in.Deployment.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: progressing}}
		}
	}
}

func actionOf(d decision.Decision) decision.Action {
	_, action := d.Write()
	return action
}

func stepOf(d decision.Decision) patch.Step {
	step, _ := d.Write()
	return step
}

// intentOf returns what the step applies; nil for nothing.
func intentOf[T any](step patch.Step) *T {
	intent, _ := any(step.Intent).(*T)
	return intent
}

func deploymentOf(d decision.Decision) *appsv1ac.DeploymentApplyConfiguration {
	return intentOf[appsv1ac.DeploymentApplyConfiguration](d.Deployment)
}

func budgetOf(d decision.Decision) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return intentOf[policyv1ac.PodDisruptionBudgetApplyConfiguration](d.Budget)
}
