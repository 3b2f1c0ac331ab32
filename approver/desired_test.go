package approver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

func clusterOf(mode configv1.TopologyMode) *topology.Cluster {
	return &topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

const single = configv1.SingleReplicaTopologyMode

// owned is an entry of managedFields.
func owned(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

func applied(fields string) metav1.ManagedFieldsEntry {
	return owned(approver.FieldOwner, metav1.ManagedFieldsOperationApply, fields)
}

// stock is the stock approver as the cluster-version-operator made it, and running.
func stock() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: approver.DeploymentName, Namespace: approver.Namespace, UID: "d", ResourceVersion: "7",
			ManagedFields: []metav1.ManagedFieldsEntry{owned(approver.ClusterVersionOperator, metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`)}},
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

func config(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: approver.ConfigMapName, Namespace: approver.Namespace, UID: "c", ResourceVersion: "5",
			ManagedFields: []metav1.ManagedFieldsEntry{owned("kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:config.yaml":{}}}`)}},
		Data: map[string]string{approver.ConfigKey: text},
	}
}

// edited is a configuration with our line in it.
func edited(text, edit string) *corev1.ConfigMap {
	with, err := approver.DisableNodeClient(text)
	if err != nil {
		panic(err)
	}
	c := config(with)
	c.Annotations = map[string]string{approver.EditAnnotation: edit}
	c.ManagedFields = []metav1.ManagedFieldsEntry{applied(`{"f:data":{"f:config.yaml":{}},"f:metadata":{"f:annotations":{"f:sno.solonode.github.io/approver-edit":{}}}}`)}
	return c
}

// restarted is the stock approver after it has read that configuration.
func restarted(token string) *appsv1.Deployment {
	d := stock()
	d.Spec.Template.Annotations = map[string]string{approver.EditAnnotation: token}
	d.ManagedFields = append(d.ManagedFields, applied(`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:sno.solonode.github.io/approver-edit":{}}}}}}`))
	return d
}

// stopped is the stock approver as this module stopped it.
func stopped() *appsv1.Deployment {
	d := stock()
	d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{}
	d.ManagedFields = []metav1.ManagedFieldsEntry{applied(`{"f:spec":{"f:replicas":{}}}`), owned(approver.ClusterVersionOperator, metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:paused":{}}}`)}
	return d
}

func version(overrides ...configv1.ComponentOverride) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: approver.ClusterVersionName, Generation: 2}, Spec: configv1.ClusterVersionSpec{Overrides: overrides},
		Status: configv1.ClusterVersionStatus{ObservedGeneration: 2}}
}

const entryKey = `k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"machine-approver\",\"namespace\":\"openshift-cluster-machine-approver\"}`

// claimed is a ClusterVersion with the entry, owned by the manager.
func claimed(manager string, unmanaged bool) *configv1.ClusterVersion {
	entry := approver.Override()
	entry.Unmanaged = unmanaged
	v := version(entry)
	fields := `{"f:spec":{"f:overrides":{"` + entryKey + `":{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`
	v.ManagedFields = []metav1.ManagedFieldsEntry{owned(manager, metav1.ManagedFieldsOperationApply, fields)}
	return v
}

func inputs(change ...func(*approver.PatchInputs)) approver.PatchInputs {
	in := approver.PatchInputs{Cluster: clusterOf(single), Machines: approver.Absent, ClusterVersion: version(), Deployment: stock()}
	for _, c := range change {
		c(&in)
	}
	return in
}

// said is a decision in one line: the action, what it writes, and the result or how the patch stands.
func said(in approver.PatchInputs) string {
	d := approver.Desired(in)
	text := string(d.Action)
	switch {
	case d.ConfigMap != nil:
		text += fmt.Sprintf(" create=%t %s %q", d.Create, d.ConfigMap.Annotations[approver.EditAnnotation], d.ConfigMap.Data[approver.ConfigKey])
	case d.Deployment != nil && d.Deployment.Spec.Replicas != nil:
		text += fmt.Sprintf(" replicas=%d from=%v", *d.Deployment.Spec.Replicas, d.TakeFrom)
	case d.Deployment != nil:
		text += " " + d.Deployment.Spec.Template.Annotations[approver.EditAnnotation]
	case d.ClusterVersion != nil:
		text += fmt.Sprintf(" %s unmanaged=%t", *d.ClusterVersion.Spec.Overrides[0].Name, *d.ClusterVersion.Spec.Overrides[0].Unmanaged)
	case d.Action == approver.RestoreConfig && d.Text == nil:
		text += " nothing as " + d.HandTo
	case d.Action == approver.RestoreConfig:
		text += fmt.Sprintf(" %q as %s", *d.Text, d.HandTo)
	}
	result := approver.Observe(in)
	if d.Result != nil {
		result = *d.Result
	}
	return strings.TrimSpace(fmt.Sprintf("%s [%s %s]", text, result.State, result.Reason))
}

func TestDesired(t *testing.T) {
	const line = `nodeClientCert: {disabled: true} # sno.solonode.github.io/approver\n`
	type in = approver.PatchInputs
	off := func(i *in) { i.Mode = approver.Off }
	for _, tt := range []struct {
		name   string
		change func(*in)
		want   string
	}{
		{"a new cluster", func(*in) {}, `ApplyConfig create=true made "` + line + `" [Progressing Restarting]`},
		{"its restart", func(i *in) { i.ConfigMap = edited("", "made") }, "ApplyDeployment c.made [Progressing Restarting]"},
		{"its rest", func(i *in) { i.ConfigMap, i.Deployment = edited("", "made"), restarted("c.made") }, "[InForce AsExpected]"},
		{"while it starts", func(i *in) {
			i.ConfigMap, i.Deployment = edited("", "made"), restarted("c.made")
			i.Deployment.Status.UpdatedReplicas = 0
		}, "[Progressing Restarting]"},
		{"a configuration of others", func(i *in) { i.ConfigMap = config("a: 1\n") }, `ApplyConfig create=false 5/kubectl-edit "` + line + `a: 1\n" [Progressing Restarting]`},
		{"a ConfigMap without the key", func(i *in) { i.ConfigMap = config(""); i.ConfigMap.Data = nil }, `ApplyConfig create=false 5/ "` + line + `" [Progressing Restarting]`},
		{"a second edit restarts again", func(i *in) { i.ConfigMap, i.Deployment = edited("a: 1\n", "9/kubectl-edit"), restarted("c.5") }, "ApplyDeployment c.9 [Progressing Restarting]"},
		{"disabled by a person", func(i *in) { i.ConfigMap = config("nodeClientCert: {disabled: true}\n") }, "[InForce AsExpected]"},
		{"disabled by a person, after us", func(i *in) {
			i.ConfigMap, i.Deployment = config("nodeClientCert: {disabled: true}\n"), restarted("c.5")
		}, "ReleaseDeployment [Progressing Restarting]"},
		{"a person's false", func(i *in) { i.ConfigMap = config("nodeClientCert: {disabled: false}\n") }, "[Blocked FieldOwnedByOther]"},
		{"our line made false", func(i *in) {
			i.ConfigMap = edited("", "5/kubectl-edit")
			i.ConfigMap.Data[approver.ConfigKey] = "nodeClientCert: {disabled: false}\n"
		}, "[Blocked FieldOwnedByOther]"},
		{"our line gone", func(i *in) {
			i.ConfigMap = edited("", "5/kubectl-edit")
			i.ConfigMap.Data[approver.ConfigKey] = "a: 1\n"
		}, "[Reverted Reverted]"},
		{"a broken configuration", func(i *in) { i.ConfigMap = config("a: [\n") }, "[Failed Invalid]"},
		{"an immutable one", func(i *in) { i.ConfigMap = config("a: 1\n"); i.ConfigMap.Immutable = ptr.To(true) }, "[Blocked FieldOwnedByOther]"},
		{"a ConfigMap on its way out", func(i *in) { i.ConfigMap = config("a: 1\n"); i.ConfigMap.DeletionTimestamp = &metav1.Time{} }, "[Progressing Restarting]"},
		{"stopped by a person", func(i *in) {
			i.ConfigMap, i.Deployment = edited("", "made"), restarted("c.made")
			i.Deployment.Spec.Replicas, i.Deployment.Status = ptr.To[int32](0), appsv1.DeploymentStatus{}
		}, "[InForce AsExpected]"},

		{"not read", func(i *in) { i.Cluster = nil }, "[Waiting WaitingForInfrastructure]"},
		{"Machines not known", func(i *in) { i.Machines = approver.Unknown }, "[Waiting WaitingForMachines]"},
		{"Machines not known, and something of ours", func(i *in) { i.Machines, i.ConfigMap = approver.Unknown, edited("", "made") }, "[Waiting WaitingForMachines]"},
		{"Machines", func(i *in) { i.Machines = approver.Present }, "[NotNeeded NotNeeded]"},
		{"no stock approver", func(i *in) { i.Deployment = nil }, "[NotNeeded NotNeeded]"},
		{"a stock approver on its way out", func(i *in) { i.Deployment.DeletionTimestamp = &metav1.Time{} }, "[NotNeeded NotNeeded]"},
		{"opted out", func(i *in) { i.Deployment.Annotations = map[string]string{patch.OptOutAnnotation: "approver"} }, "[OptedOut OptedOut]"},
		{"opted out on the ClusterVersion", func(i *in) { i.ClusterVersion.Annotations = map[string]string{patch.OptOutAnnotation: "all"} }, "[OptedOut OptedOut]"},
		{"managedFields that say nothing", func(i *in) {
			i.Deployment.ManagedFields = []metav1.ManagedFieldsEntry{owned("x", metav1.ManagedFieldsOperationUpdate, `{"f:`)}
		}, "[Failed Invalid]"},
		{"another mode", func(i *in) { i.Mode = "on" }, "[Failed Invalid]"},

		{"letting go of the text of others", func(i *in) { i.Machines, i.ConfigMap = approver.Present, edited("a: 1\n", "5/kubectl-edit") }, `RestoreConfig "a: 1\n" as kubectl-edit [NotNeeded NotNeeded]`},
		{"letting go of an empty text", func(i *in) { i.Machines, i.ConfigMap = approver.Present, edited("", "5/kubectl-edit") }, `RestoreConfig "" as kubectl-edit [NotNeeded NotNeeded]`},
		{"letting go of a key of ours", func(i *in) { i.Machines, i.ConfigMap = approver.Present, edited("", "5/") }, "RestoreConfig nothing as sno.solonode.github.io/approver-released [NotNeeded NotNeeded]"},
		{"letting go of what a person changed", func(i *in) {
			i.Machines, i.ConfigMap = approver.Present, edited("b: 2\n", "made")
			i.ConfigMap.ManagedFields = append(i.ConfigMap.ManagedFields, owned("vi", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:config.yaml":{}}}`))
		}, `RestoreConfig "b: 2\n" as vi [NotNeeded NotNeeded]`},
		{"letting go of our own ConfigMap", func(i *in) { i.Machines, i.ConfigMap = approver.Present, edited("", "made") }, "DeleteConfig [NotNeeded NotNeeded]"},
		{"letting go of our own ConfigMap with something of others", func(i *in) {
			i.Machines, i.ConfigMap = approver.Present, edited("", "made")
			i.ConfigMap.Data["other"] = "x"
		}, "RestoreConfig nothing as sno.solonode.github.io/approver-released [NotNeeded NotNeeded]"},
		{"letting go of our own ConfigMap with something binary of others", func(i *in) {
			i.Machines, i.ConfigMap = approver.Present, edited("", "made")
			i.ConfigMap.BinaryData = map[string][]byte{"other": {1}}
		}, "RestoreConfig nothing as sno.solonode.github.io/approver-released [NotNeeded NotNeeded]"},
		{"letting go of a ConfigMap on its way out", func(i *in) {
			i.Machines, i.ConfigMap = approver.Present, edited("a: 1\n", "5/kubectl-edit")
			i.ConfigMap.DeletionTimestamp = &metav1.Time{}
		}, "[NotNeeded NotNeeded]"},
		{"letting go of the restart", func(i *in) { i.Machines, i.Deployment = approver.Present, restarted("c.5") }, "ReleaseDeployment [NotNeeded NotNeeded]"},
		{"letting go of the replicas", func(i *in) {
			i.Machines, i.Deployment, i.ClusterVersion = approver.Present, stopped(), claimed(approver.FieldOwner, true)
		}, "ReleaseDeployment [NotNeeded NotNeeded]"},
		{"letting go of the entry", func(i *in) { i.Machines, i.ClusterVersion = approver.Present, claimed(approver.FieldOwner, true) }, "Unclaim [NotNeeded NotNeeded]"},

		{"off", off, "Claim machine-approver unmanaged=true [Progressing TakingOver]"},
		{"off, not seen yet", func(i *in) {
			off(i)
			i.ClusterVersion = claimed(approver.FieldOwner, true)
			i.ClusterVersion.Generation = 3
		}, "[Progressing TakingOver]"},
		{"off, seen", func(i *in) { off(i); i.ClusterVersion = claimed(approver.FieldOwner, true) }, "ApplyDeployment replicas=0 from=[cluster-version-operator] [Progressing Restarting]"},
		{"off, where nobody says how many", func(i *in) {
			off(i)
			i.ClusterVersion, i.Deployment.Spec.Replicas = claimed(approver.FieldOwner, true), nil
		}, "ApplyDeployment replicas=0 from=[cluster-version-operator] [Progressing Restarting]"},
		{"off, by somebody's entry", func(i *in) { off(i); i.ClusterVersion = claimed("kubectl", true) }, "ApplyDeployment replicas=0 from=[cluster-version-operator] [Progressing Restarting]"},
		{"off, against somebody's entry", func(i *in) { off(i); i.ClusterVersion = claimed("kubectl", false) }, "[Blocked FieldOwnedByOther]"},
		{"off, and the list is one value", func(i *in) {
			off(i)
			i.ClusterVersion = version(configv1.ComponentOverride{Kind: "Deployment", Name: "x", Unmanaged: true})
			i.ClusterVersion.ManagedFields = []metav1.ManagedFieldsEntry{owned("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:overrides":{}}}`)}
		}, "[Blocked FieldOwnedByOther]"},
		{"off, without a cluster-version-operator", func(i *in) { off(i); i.ClusterVersion = nil }, "ApplyDeployment replicas=0 from=[cluster-version-operator] [Progressing Restarting]"},
		{"off, and a person owns the replicas", func(i *in) {
			off(i)
			i.Deployment.ManagedFields = append(i.Deployment.ManagedFields, owned("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`))
		}, "[Blocked FieldOwnedByOther]"},
		{"off, and a person takes the replicas afterwards", func(i *in) {
			off(i)
			i.ClusterVersion = claimed(approver.FieldOwner, true)
			i.Deployment.ManagedFields = append(i.Deployment.ManagedFields, owned("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`))
		}, "Unclaim [Blocked FieldOwnedByOther]"},
		{"off, at rest", func(i *in) { off(i); i.Deployment, i.ClusterVersion = stopped(), claimed(approver.FieldOwner, true) }, "[InForce AsExpected]"},
		{"off, while it stops", func(i *in) {
			off(i)
			i.Deployment, i.ClusterVersion = stopped(), claimed(approver.FieldOwner, true)
			i.Deployment.Status.Replicas = 1
		}, "[Progressing Restarting]"},
		{"off after the default", func(i *in) {
			off(i)
			i.Deployment, i.ClusterVersion, i.ConfigMap = stopped(), claimed(approver.FieldOwner, true), edited("a: 1\n", "5/kubectl-edit")
		}, `RestoreConfig "a: 1\n" as kubectl-edit [Progressing Restarting]`},
		{"the default after off: first the configuration", func(i *in) {
			i.Deployment, i.ClusterVersion, i.ConfigMap = stopped(), claimed(approver.FieldOwner, true), config("a: 1\n")
		}, `ApplyConfig create=false 5/kubectl-edit "` + line + `a: 1\n" [Progressing Restarting]`},
		{"the default after off: then the replica", func(i *in) {
			i.Deployment, i.ClusterVersion, i.ConfigMap = stopped(), claimed(approver.FieldOwner, true), edited("a: 1\n", "5/kubectl-edit")
		}, "ReleaseDeployment [Progressing Restarting]"},
		{"the default after off: then the entry", func(i *in) {
			i.ClusterVersion, i.ConfigMap = claimed(approver.FieldOwner, true), edited("a: 1\n", "5/kubectl-edit")
		}, "Unclaim [Progressing Restarting]"},
		{"the default after off, where the line was taken out", func(i *in) {
			i.Deployment, i.ClusterVersion, i.ConfigMap = stopped(), claimed(approver.FieldOwner, true), config("nodeClientCert: {disabled: false}\n")
		}, "[Blocked FieldOwnedByOther]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := inputs(tt.change)
			if got := said(in); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if diff := cmp.Diff(approver.Desired(in), approver.Desired(in)); diff != "" {
				t.Errorf("not the same twice:\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*approver.PatchInputs){
		"ClusterVersion": func(in *approver.PatchInputs) { in.ClusterVersion.Name = "other" },
		"Deployment":     func(in *approver.PatchInputs) { in.Deployment.Namespace = "other" },
		"ConfigMap":      func(in *approver.PatchInputs) { in.ConfigMap = config(""); in.ConfigMap.Name = "other" },
		"mode":           func(in *approver.PatchInputs) { in.Mode = "On" },
		"Cluster":        func(in *approver.PatchInputs) { in.Cluster = &topology.Cluster{} },
	} {
		if err := inputs(change).Validate(); !errors.Is(err, approver.ErrInputs) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inputs().Validate(); err != nil {
		t.Error(err)
	}
}

// Without a Deployment there is nothing to observe, and nothing breaks.
func TestObserveNothing(t *testing.T) {
	if got := approver.Observe(approver.PatchInputs{}); got.State != patch.Progressing {
		t.Errorf("%v", got)
	}
}
