// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

func clusterOf(mode configv1.TopologyMode) *topology.Cluster {
	return &topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

const single = configv1.SingleReplicaTopologyMode

// owned returns an entry of managedFields: an apply of this module, an update of other managers.
func owned(manager, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	if manager == decision.FieldOwner {
		entry.Operation = metav1.ManagedFieldsOperationApply
	}
	return entry
}

func ownedByModule(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{owned(decision.FieldOwner, fields)}
}

const (
	ownsReplicas = `{"f:spec":{"f:replicas":{}}}`
	ownsText     = `{"f:data":{"f:config.yaml":{}}}`
)

func stock() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: decision.DeploymentName, Namespace: decision.Namespace, UID: "d", ResourceVersion: "7",
			ManagedFields: []metav1.ManagedFieldsEntry{owned(overrides.ClusterVersionOperator, ownsReplicas)}},
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

func config(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: decision.ConfigMapName, Namespace: decision.Namespace, UID: "c", ResourceVersion: "5",
			ManagedFields: []metav1.ManagedFieldsEntry{owned("kubectl-edit", ownsText)}},
		Data: map[string]string{decision.ConfigKey: text},
	}
}

func edited(text, edit string) *corev1.ConfigMap {
	with, err := decision.DisableNodeClient(text)
	if err != nil {
		panic(err)
	}
	c := config(with)
	c.Annotations = map[string]string{decision.EditAnnotation: edit}
	c.ManagedFields = ownedByModule(`{"f:data":{"f:config.yaml":{}},"f:metadata":{"f:annotations":{"f:sno.solonode.github.io/approver-edit":{}}}}`)
	return c
}

func restarted(token string) *appsv1.Deployment {
	d := stock()
	d.Spec.Template.Annotations = map[string]string{decision.EditAnnotation: token}
	d.ManagedFields = append(d.ManagedFields,
		ownedByModule(`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:sno.solonode.github.io/approver-edit":{}}}}}}`)...)
	return d
}

// stopped returns the stock approver after another client scaled it to zero.
func stopped(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{}
	return d
}

func stoppedByModule() *appsv1.Deployment {
	d := stopped(stock())
	d.ManagedFields = append(ownedByModule(ownsReplicas), owned(overrides.ClusterVersionOperator, `{"f:spec":{"f:paused":{}}}`))
	return d
}

func version(list ...configv1.ComponentOverride) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: overrides.ClusterVersionName, Generation: 2},
		Spec: configv1.ClusterVersionSpec{Overrides: list}, Status: configv1.ClusterVersionStatus{ObservedGeneration: 2}}
}

func claimed(manager string, unmanaged bool) *configv1.ClusterVersion {
	entry := decision.Override()
	entry.Unmanaged = unmanaged
	v := version(entry)
	v.ManagedFields = []metav1.ManagedFieldsEntry{owned(manager, `{"f:spec":{"f:overrides":{"k:{\"group\":\"apps\",\"kind\":\"Deployment\",`+
		`\"name\":\"machine-approver\",\"namespace\":\"openshift-cluster-machine-approver\"}":`+
		`{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`)}
	return v
}

func inputs(change ...func(*decision.Inputs)) decision.Inputs {
	in := decision.Inputs{Cluster: clusterOf(single), Machines: approver.MachinesAbsent, ClusterVersion: version(), Deployment: stock()}
	for _, c := range change {
		c(&in)
	}
	return in
}

func resultOf(in decision.Inputs, d decision.Decision) patch.Result {
	if d.Result != nil {
		return *d.Result
	}
	return decision.Observe(in)
}

func writeOf(d decision.Decision) (action, what string) {
	switch {
	case d.Config.Intent != nil:
		intent := d.Config.Intent.(*corev1ac.ConfigMapApplyConfiguration)
		what = fmt.Sprintf(" create=%t %s %q", d.Config.Create, intent.Annotations[decision.EditAnnotation], intent.Data[decision.ConfigKey])
		if !d.Config.Create {
			what += " of " + string(*intent.UID) + "." + *intent.ResourceVersion
		}
		return "ApplyConfig", what
	case d.Config.Delete:
		return "DeleteConfig", ""
	case d.Config.Release:
		return "RestoreConfig", fmt.Sprintf(" %q as %s", ptr.Deref(d.Config.Text, "nothing"), d.Config.NewOwner)
	case d.Deployment.Intent != nil:
		spec := d.Deployment.Intent.(*appsv1ac.DeploymentApplyConfiguration).Spec
		if spec.Replicas != nil {
			return "ApplyDeployment", fmt.Sprintf(" replicas=%d", *spec.Replicas)
		}
		return "ApplyDeployment", " " + spec.Template.Annotations[decision.EditAnnotation]
	case d.Deployment.Release:
		return "ReleaseDeployment", ""
	case d.ClusterVersion.Intent != nil:
		entry := d.ClusterVersion.Intent.(*configv1ac.ClusterVersionApplyConfiguration).Spec.Overrides[0]
		return "Claim", fmt.Sprintf(" %s unmanaged=%t", *entry.Name, *entry.Unmanaged)
	case d.ClusterVersion.Release:
		return "Unclaim", ""
	}
	return "", ""
}

func TestDecide(t *testing.T) {
	const (
		line     = `nodeClientCert: {disabled: true} # sno.solonode.github.io/approver\n`
		released = `RestoreConfig "nothing" as sno.solonode.github.io/approver-released [NotNeeded NotNeeded]`
	)
	type in = decision.Inputs
	machines := func(c *corev1.ConfigMap) func(*in) {
		return func(i *in) { i.Machines, i.ConfigMap = approver.MachinesPresent, c }
	}
	has := func(c *corev1.ConfigMap) func(*in) { return func(i *in) { i.ConfigMap = c } }
	off := func(v *configv1.ClusterVersion) func(*in) {
		return func(i *in) { i.Mode, i.ClusterVersion = decision.Off, v }
	}
	same := func(*in) {}
	for _, tt := range []struct {
		name         string
		from, change func(*in)
		want         string
	}{
		{"a new cluster", has(nil), same, `ApplyConfig create=true made "` + line + `" [Progressing Restarting]`},
		{"its restart", has(edited("", "made")), same, "ApplyDeployment c.made [Progressing Restarting]"},
		{"while it starts", has(edited("", "made")), func(i *in) {
			i.Deployment = restarted("c.made")
			i.Deployment.Status.UpdatedReplicas = 0
		}, "[Progressing Restarting]"},
		{"a configuration of others", has(config("a: 1\n")), same, `ApplyConfig create=false 5/kubectl-edit "` + line + `a: 1\n" of c.5 [Progressing Restarting]`},
		{"a ConfigMap without the key", has(config("")), func(i *in) { i.ConfigMap.Data = nil },
			`ApplyConfig create=false 5/ "` + line + `" of c.5 [Progressing Restarting]`},
		{"another restart after a second edit", has(edited("a: 1\n", "9/kubectl-edit")), func(i *in) { i.Deployment = restarted("c.5") },
			"ApplyDeployment c.9 [Progressing Restarting]"},
		{"the module's line changed to false", has(edited("", "5/kubectl-edit")), func(i *in) {
			i.ConfigMap.Data[decision.ConfigKey] = "nodeClientCert: {disabled: false}\n"
		}, "[Blocked FieldOwnedByOther]"},
		{"an immutable ConfigMap", has(config("a: 1\n")), func(i *in) { i.ConfigMap.Immutable = ptr.To(true) }, "[Blocked FieldOwnedByOther]"},
		{"a ConfigMap that is being deleted", has(config("a: 1\n")), func(i *in) { i.ConfigMap.DeletionTimestamp = &metav1.Time{} }, "[Progressing Restarting]"},
		{"stopped by a person", has(edited("", "made")), func(i *in) { i.Deployment = stopped(restarted("c.made")) }, "[InForce AsExpected]"},
		{"unreadable managedFields", has(nil), func(i *in) {
			i.Deployment.ManagedFields = []metav1.ManagedFieldsEntry{owned("x", `{"f:`)}
		}, "[Failed Invalid]"},

		{"releasing a text of another manager", machines(edited("a: 1\n", "5/kubectl-edit")), same, `RestoreConfig "a: 1\n" as kubectl-edit [NotNeeded NotNeeded]`},
		{"releasing an empty text", machines(edited("", "5/kubectl-edit")), same, `RestoreConfig "" as kubectl-edit [NotNeeded NotNeeded]`},
		{"releasing a key that the module created", machines(edited("", "5/")), same, released},
		{"releasing after a change of a person", machines(edited("b: 2\n", "made")), func(i *in) {
			i.ConfigMap.ManagedFields = append(i.ConfigMap.ManagedFields, owned("vi", ownsText))
		}, `RestoreConfig "b: 2\n" as vi [NotNeeded NotNeeded]`},
		{"releasing a ConfigMap that the module created", machines(edited("", "made")), same, "DeleteConfig [NotNeeded NotNeeded]"},
		{"the same with other data", machines(edited("", "made")), func(i *in) { i.ConfigMap.Data["other"] = "x" }, released},
		{"the same with other binary data", machines(edited("", "made")), func(i *in) {
			i.ConfigMap.BinaryData = map[string][]byte{"other": {1}}
		}, released},
		{"releasing a ConfigMap that is being deleted", machines(edited("a: 1\n", "5/kubectl-edit")), func(i *in) {
			i.ConfigMap.DeletionTimestamp = &metav1.Time{}
		}, "[NotNeeded NotNeeded]"},

		{"off", off(version()), same, "Claim machine-approver unmanaged=true [Progressing TakingOver]"},
		{"off, observed", off(claimedByModule()), same, "ApplyDeployment replicas=0 [Progressing Restarting]"},
		{"off, without a number of replicas", off(claimedByModule()), func(i *in) { i.Deployment.Spec.Replicas = nil },
			"ApplyDeployment replicas=0 [Progressing Restarting]"},
		{"off, and another manager owns the whole list", off(version(configv1.ComponentOverride{Kind: "Deployment", Name: "x", Unmanaged: true})), func(i *in) {
			i.ClusterVersion.ManagedFields = []metav1.ManagedFieldsEntry{owned("kubectl", `{"f:spec":{"f:overrides":{}}}`)}
		}, "[Blocked FieldOwnedByOther]"},
		{"off, while it stops", off(claimedByModule()), func(i *in) {
			i.Deployment = stoppedByModule()
			i.Deployment.Status.Replicas = 1
		}, "[Progressing Restarting]"},
	} {
		in := inputs(tt.from, tt.change)
		d := decision.Decide(in)
		action, what := writeOf(d)
		result := resultOf(in, d)
		if got := strings.TrimSpace(fmt.Sprintf("%s%s [%s %s]", action, what, result.State, result.Reason)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(d, decision.Decide(in)); diff != "" {
			t.Errorf("%s: another decision the second time:\n%s", tt.name, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*decision.Inputs){
		"ClusterVersion": func(in *decision.Inputs) { in.ClusterVersion.Name = "other" },
		"Deployment":     func(in *decision.Inputs) { in.Deployment.Namespace = "other" },
		"ConfigMap":      func(in *decision.Inputs) { in.ConfigMap = config(""); in.ConfigMap.Name = "other" },
		"mode":           func(in *decision.Inputs) { in.Mode = "On" },
		"Cluster":        func(in *decision.Inputs) { in.Cluster = &topology.Cluster{} },
	} {
		if err := inputs(change).Validate(); !errors.Is(err, approver.ErrInputs) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inputs().Validate(); err != nil {
		t.Error(err)
	}
	if got := decision.Observe(decision.Inputs{}); got.State != patch.Progressing {
		t.Errorf("Observe without inputs: %v", got)
	}
}

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func TestAging(t *testing.T) {
	const waiting, expiring = decision.ReasonRequestsPending, decision.ReasonCertificatesExpiring
	const day = 24 * time.Hour
	type lives = [][2]time.Duration
	for _, tt := range []struct {
		name    string
		pending []time.Duration // ages
		left    lives           // since a certificate began, until it ends
		want    string
		oldest  time.Duration
		least   time.Duration
	}{
		{name: "nothing"},
		{name: "a young request", pending: []time.Duration{time.Minute}, oldest: time.Minute},
		{name: "a request at the age limit", pending: []time.Duration{15 * time.Minute, 0}, oldest: 15 * time.Minute},
		{name: "an old request among young ones", pending: []time.Duration{0, 16 * time.Minute, time.Minute}, want: waiting, oldest: 16 * time.Minute},
		{name: "a request from the future", pending: []time.Duration{-time.Minute}},
		{name: "half of the lifetime left", left: lives{{15 * day, 15 * day}}, least: 15 * day},
		{name: "three days left of thirty", left: lives{{27 * day, 3 * day}}, least: 3 * day},
		{name: "two days left of thirty", left: lives{{1 * day, 29 * day}, {28 * day, 2 * day}}, want: expiring, least: 2 * day},
		{name: "a certificate of one day", left: lives{{20 * time.Hour, 4 * time.Hour}}, least: 4 * time.Hour},
		{name: "two hours left of one day", left: lives{{22 * time.Hour, 2 * time.Hour}}, want: expiring, least: 2 * time.Hour},
		{name: "expired", left: lives{{30 * day, -time.Hour}}, want: expiring, least: -time.Hour},
		{name: "the first to expire is not the first due", left: lives{{20 * time.Hour, 4 * time.Hour}, {300 * day, 2 * day}}, want: expiring, least: 4 * time.Hour},
		{name: "both", pending: []time.Duration{time.Hour}, left: lives{{30 * day, time.Hour}}, want: expiring, oldest: time.Hour, least: time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			aging := decision.Aging{Limits: decision.DefaultAgeLimits}
			for _, age := range tt.pending {
				aging.AddPending(now.Add(-age))
			}
			for _, c := range tt.left {
				aging.AddCertificate(now.Add(-c[0]), now.Add(c[1]))
			}
			got := aging.Observe(now)
			if (got == nil) != (tt.want == "") || (got != nil && (got.Reason != tt.want || got.State != patch.Failed || got.Message == "")) {
				t.Errorf("got %v", got)
			}
			if oldest := aging.OldestAge(now); oldest != tt.oldest || aging.Pending != len(tt.pending) {
				t.Errorf("%d pending, the oldest is %s old", aging.Pending, oldest)
			}
			if aging.Certificates != len(tt.left) || len(tt.left) > 0 && aging.FirstEnd.Sub(now) != tt.least {
				t.Errorf("%d certificates, the first expires at %s", aging.Certificates, aging.FirstEnd)
			}
		})
	}
}
