// SPDX-License-Identifier: Apache-2.0

package operand_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

const (
	fieldOwner = "sno.solonode.github.io/sample"

	affinity  = ".spec.template.spec.affinity"
	apart     = affinity + ".podAntiAffinity"
	required  = apart + ".requiredDuringSchedulingIgnoredDuringExecution"
	preferred = apart + ".preferredDuringSchedulingIgnoredDuringExecution"
)

var errShape = errors.New("no shape")

type change = func(*appsv1.Deployment)

// live returns a Deployment with two pods that must not share a node.
func live(changes ...change) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", Generation: 1}}
	labels := map[string]string{"app": "d"}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: workload.RollingUpdate(topology.Rollout{MaxUnavailable: intstr.FromString("25%"), MaxSurge: intstr.FromString("25%")}),
	}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	d.Spec.Template.Spec.Affinity = terms(list(own), nil)
	ownedFields("creator", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`)(d)
	for _, f := range changes {
		f(d)
	}
	return d
}

// onOne sets the shape for one node, rolled out.
func onOne(d *appsv1.Deployment) {
	shaped, _ := toOne(d)
	*d = *shaped
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func toOne(d *appsv1.Deployment) (*appsv1.Deployment, error) {
	shaped := d.DeepCopy()
	shaped.Spec.Replicas = ptr.To[int32](1)
	shaped.Spec.Strategy = workload.RollingUpdate(topology.RolloutStrategy(configv1.SingleReplicaTopologyMode, false))
	workload.Place(&shaped.Spec.Template.Spec, topology.ControlPlanePool)
	workload.Separate(shaped, workload.SeparateNever)
	return shaped, nil
}

func sample(d *appsv1.Deployment) operand.Deployment {
	cluster := topology.Cluster{ControlPlane: topology.ReadingOf(configv1.SingleReplicaTopologyMode), Infrastructure: topology.ReadingOf("Quantum")}
	return operand.Deployment{Subject: "sample Deployment", Owner: fieldOwner, Live: d, Cluster: &cluster, Shape: toOne}
}

func ownedFields(manager, fields string) change {
	return func(d *appsv1.Deployment) {
		operation := metav1.ManagedFieldsOperationUpdate
		if manager == fieldOwner {
			operation = metav1.ManagedFieldsOperationApply
		}
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		})
	}
}

func owned(manager, field string) change {
	names := strings.Split(strings.TrimPrefix(field, "."), ".")
	return ownedFields(manager, `{"f:`+strings.Join(names, `":{"f:`)+`":{}`+strings.Repeat("}", len(names)))
}

var (
	own   = corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "d"}}, TopologyKey: corev1.LabelHostname}
	other = corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "noisy"}},
		TopologyKey: corev1.LabelHostname}
)

func terms(hard, soft []corev1.PodAffinityTerm) *corev1.Affinity {
	anti := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: hard}
	for i, term := range soft {
		weighted := corev1.WeightedPodAffinityTerm{Weight: int32(i + 1), PodAffinityTerm: term} //nolint:gosec // a few
		anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
	}
	return &corev1.Affinity{PodAntiAffinity: anti}
}

// deadline sets a condition that the progress deadline has passed.
func deadline(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded"}}
}

func list(terms ...corev1.PodAffinityTerm) []corev1.PodAffinityTerm { return terms }

func has(a *corev1.Affinity) change {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Affinity = a }
}

func TestExists(t *testing.T) {
	deleting := func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }
	for message, d := range map[string]*appsv1.Deployment{
		"":                                       live(),
		"There is no sample Deployment;":         nil,
		"The sample Deployment is being deleted": live(deleting),
	} {
		got := sample(d).Exists()
		wrong := got != nil && (got.State != patch.Waiting || got.Reason != "WaitingForObject" || !strings.HasPrefix(got.Message, message))
		if (got == nil) != (message == "") || wrong {
			t.Errorf("%v, want %s", got, message)
		}
	}
}

// TestFieldsFree shows R-SNO-5: a field that another client owns with another value blocks the whole shape.
func TestFieldsFree(t *testing.T) {
	replicas := func(n int32) change { return func(d *appsv1.Deployment) { d.Spec.Replicas = &n } }
	update := func(unavailable, surge int32) change {
		return func(d *appsv1.Deployment) {
			d.Spec.Strategy = workload.RollingUpdate(topology.Rollout{MaxUnavailable: intstr.FromInt32(unavailable), MaxSurge: intstr.FromInt32(surge)})
		}
	}
	tolerates := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}}
	}
	recreates := func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	unowned := func(d *appsv1.Deployment) { d.ManagedFields = nil }
	force := func(o *operand.Deployment) { o.Force = true }
	for name, test := range map[string]struct {
		live    *appsv1.Deployment
		change  func(*operand.Deployment)
		field   string
		manager string
	}{
		"no owner":                 {live: live()},
		"replicas":                 {live(owned("oc", ".spec.replicas")), nil, ".spec.replicas", `"oc"`},
		"equal replicas":           {live: live(replicas(1), owned("oc", ".spec.replicas"))},
		"owned replicas":           {live: live(owned(fieldOwner, ".spec.replicas"))},
		"overridable":              {live: live(owned("creator", ".spec.replicas"))},
		"overridable, and another": {live(owned("creator", ".spec.replicas"), owned("oc", ".spec.replicas")), nil, ".spec.replicas", `"oc"`},
		"forced":                   {live: live(owned("oc", ".spec.replicas")), change: force},
		"replicas by default":      {live: live(func(d *appsv1.Deployment) { d.Spec.Replicas = nil })},
		"strategy":                 {live(recreates, owned("oc", ".spec.strategy.type")), nil, ".spec.strategy.type", `"oc"`},
		"maxSurge":                 {live(owned("oc", ".spec.strategy.rollingUpdate.maxSurge")), nil, ".spec.strategy.rollingUpdate.maxSurge", `"oc"`},
		"maxUnavailable": {live(owned("oc", ".spec.strategy.rollingUpdate.maxUnavailable")), nil,
			".spec.strategy.rollingUpdate.maxUnavailable", `"oc"`},
		"maxUnavailable of the first rollout": {live(update(1, 1), owned("oc", ".spec.strategy.rollingUpdate.maxUnavailable")), nil,
			".spec.strategy.rollingUpdate.maxUnavailable", `"oc"`},
		"maxUnavailable of later rollouts": {live(update(0, 1), owned("oc", ".spec.strategy.rollingUpdate.maxUnavailable")), nil,
			".spec.strategy.rollingUpdate.maxUnavailable", `"oc"`},
		"without a first rollout": {live: live(update(0, 1), has(nil), owned("oc", ".spec.strategy.rollingUpdate.maxUnavailable"))},
		"node selector":           {live(owned("oc", ".spec.template.spec.nodeSelector")), nil, ".spec.template.spec.nodeSelector", `"oc"`},
		"tolerations":             {live(tolerates, owned("oc", ".spec.template.spec.tolerations")), nil, ".spec.template.spec.tolerations", `"oc"`},
		"no tolerations":          {live: live(owned("oc", ".spec.template.spec.tolerations"))},
		"anti-affinity":           {live(owned("oc", required)), nil, required, `"oc"`},
		"about other pods":        {live: live(has(terms(list(other), nil)), owned("oc", required))},
		"one of two terms":        {live(has(terms(list(other, own), nil)), owned("oc", required)), nil, required, `"oc"`},
		"a preference":            {live(has(terms(nil, list(own))), owned("oc", preferred)), nil, preferred, `"oc"`},
		"containers":              {live: live(owned("oc", ".spec.template.spec.containers"))},
		"no owners at all":        {live(unowned), nil, ".spec.replicas", `"before-first-apply"`},
		"no owners, and shaped":   {live: live(onOne, unowned)},
		"unreadable":              {live: live(ownedFields("oc", `{"f:spec":7}`)), field: "Invalid"},
		"no shape":                {live(), func(o *operand.Deployment) { o.Shape = noShape }, "Invalid", ""},
	} {
		o := sample(test.live)
		if test.change != nil {
			test.change(&o)
		}
		got := o.FieldsFree("creator")
		switch {
		case test.field == "" && got != nil, test.field != "" && got == nil:
			t.Errorf("%s: %v, want %q", name, got, test.field)
		case got == nil:
		case test.field == "Invalid":
			if got.Reason != "Invalid" || got.State != patch.Failed {
				t.Errorf("%s: %v", name, got)
			}
		default:
			want := "Blocked (FieldOwnedByOther): " + test.field + " of the sample Deployment is owned by " + test.manager + " and stays as it is, and so does " +
				"the rest of it; to have it follow the topology, remove the field there or start with --force-conflicts"
			if got.String() != want {
				t.Errorf("%s: %s\nwant %s", name, got, want)
			}
		}
	}
}

func noShape(*appsv1.Deployment) (*appsv1.Deployment, error) { return nil, errShape }

func TestStep(t *testing.T) {
	const head = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","namespace":"ns"},"spec":{"replicas":1,`
	const pod = `"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux","node-role.kubernetes.io/master":""},"tolerations":[` +
		`{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
		`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]}},`
	const quick = `"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}}`
	unblocked := strings.Replace(quick, `"maxUnavailable":0`, `"maxUnavailable":1`, 1)
	status := func(replicas, available int32) change {
		return func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.AvailableReplicas = replicas, available }
	}
	scaled := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }
	toWorkers := func(d *appsv1.Deployment) (*appsv1.Deployment, error) {
		shaped, err := toOne(d)
		shaped.Spec.Template.Spec.NodeSelector, shaped.Spec.Template.Spec.Tolerations = nil, nil
		return shaped, err
	}
	tolerates := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}}
	}
	for name, test := range map[string]struct {
		live   *appsv1.Deployment
		shape  func(*appsv1.Deployment) (*appsv1.Deployment, error)
		intent string
		unset  []string
		result string
	}{
		"old pods block": {live(), toOne, head + pod + unblocked, []string{required, affinity},
			"Progressing (RollingOut): The sample Deployment is being shaped"},
		"no old pods": {live(has(nil)), toOne, head + pod + quick, nil, "Progressing (RollingOut): The sample Deployment is being shaped"},
		"rolling out": {live(onOne, status(2, 1)), toOne, head + pod + quick, nil,
			"Progressing (RollingOut): The sample Deployment is rolling out while available; if pods stay Pending or crash, look at their events and logs"},
		"stuck and not shaped": {live(onOne, status(1, 0), deadline, scaled), toOne, head + pod + quick, nil,
			"Progressing (RollingOut): The sample Deployment is being shaped"},
		"in force": {live(onOne), toOne, head + pod + quick, nil,
			"InForce (AsExpected): The sample Deployment has the shape of the topology, and all of its pods are available" +
				`; status.infrastructureTopology has the unknown value "Quantum", acting on HighlyAvailable`},
		"nothing selected or tolerated": {live(has(nil), tolerates), toWorkers, head + quick,
			[]string{".spec.template.spec.nodeSelector", ".spec.template.spec.tolerations"},
			"Progressing (RollingOut): The sample Deployment is being shaped"},
		"nothing selected before": {live(has(nil), func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = nil }), toWorkers, head + quick, nil,
			"Progressing (RollingOut): The sample Deployment is being shaped"},
		"unreadable": {live(ownedFields("oc", `{"f:spec":7}`)), toOne, "", nil,
			`Failed (Invalid): The inputs cannot be understood: unreadable metadata.managedFields: manager "oc"`},
		"no shape": {live(), noShape, "", nil, "Failed (Invalid): The inputs cannot be understood: no shape"},
	} {
		o := sample(test.live)
		o.Shape = test.shape
		before := test.live.DeepCopy()
		for range 2 {
			step := o.Step()
			if (step.Intent == nil) != (test.intent == "") || step.Release || !strings.HasPrefix(step.Result.String(), test.result) {
				t.Errorf("%s: %+v, %v, want %s", name, step, step.Result, test.result)
			}
			if test.intent != "" && !cmp.Equal(decoded(t, test.intent), decoded(t, step.Intent)) {
				t.Errorf("%s: intent %s\nwant %s", name, text(t, step.Intent), test.intent)
			}
			if diff := cmp.Diff(test.unset, step.Unset); diff != "" {
				t.Errorf("%s: unset (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(before, test.live); diff != "" {
				t.Errorf("%s: the Deployment was changed:\n%s", name, diff)
			}
		}
		if shaped, err := o.Shaped(); (err != nil) != (name == "no shape") || shaped != (name == "in force" || name == "rolling out") {
			t.Errorf("%s: shaped %t, %v", name, shaped, err)
		}
	}
}

func decoded(t *testing.T, v any) any {
	t.Helper()
	encoded, isText := v.(string)
	if !isText {
		encoded = text(t, v)
	}
	var out any
	if err := json.Unmarshal([]byte(encoded), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestStepAntiAffinity(t *testing.T) {
	const (
		noisy     = `{"labelSelector":{"matchLabels":{"app":"noisy"}},"topologyKey":"kubernetes.io/hostname"}`
		hard      = `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + noisy + `]}}`
		soft      = `{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":` + noisy + `,"weight":2}]}}`
		softOne   = `{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":` + noisy + `,"weight":1}]}}`
		emptyJSON = `{"f:spec":{"f:template":{"f:spec":{"f:affinity":{".":{},"f:podAntiAffinity":{}}}}}}`
	)
	noOwner := func(*appsv1.Deployment) {}
	for name, test := range map[string]struct {
		required, preferred []corev1.PodAffinityTerm
		nodes               *corev1.NodeAffinity
		owner               change
		intent              string
		unset               []string
	}{
		"nothing":                             {nil, nil, nil, noOwner, "null", nil},
		"required removed":                    {list(own), nil, nil, noOwner, "null", fields(required, affinity)},
		"preferred removed":                   {nil, list(own), nil, noOwner, "null", fields(preferred, affinity)},
		"both removed":                        {list(own), list(own), nil, noOwner, "null", fields(required, preferred, affinity)},
		"both removed, nodes stay":            {list(own), list(own), &corev1.NodeAffinity{}, noOwner, "null", fields(required, preferred, apart)},
		"required removed, others' preferred": {list(own), list(other), nil, noOwner, "null", fields(required)},
		"others' required, preferred removed": {list(other), list(own), nil, noOwner, "null", fields(preferred)},
		"a part of required removed":          {list(own, other), nil, nil, noOwner, hard, nil},
		"a part of preferred removed":         {nil, list(own, other), nil, noOwner, soft, nil},
		"others' alone":                       {list(other), list(other), nil, noOwner, "null", nil},
		"others' in an owned list":            {list(other), nil, nil, owned(fieldOwner, required), hard, nil},
		"others' in an owned preference":      {nil, list(other), nil, owned(fieldOwner, preferred), softOne, nil},
		"others' in both, which are owned": {list(other), list(other), nil, ownedFields(fieldOwner, `{"f:spec":{"f:template":{"f:spec":{"f:affinity":`+
			`{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{},"f:preferredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`),
			`{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":` + noisy + `,"weight":1}],` +
				`"requiredDuringSchedulingIgnoredDuringExecution":[` + noisy + `]}}`, nil},
		"owned and empty":                     {nil, nil, nil, owned(fieldOwner, required), "null", fields(affinity)},
		"owned and empty, with nodes":         {nil, nil, &corev1.NodeAffinity{}, owned(fieldOwner, required), "null", fields(apart)},
		"another client's, and empty":         {nil, nil, nil, ownedFields("oc", emptyJSON), "null", nil},
		"a part of required, preferred whole": {list(own, other), list(own), nil, noOwner, hard, fields(preferred)},
	} {
		a := terms(test.required, test.preferred)
		a.NodeAffinity = test.nodes
		step := sample(live(has(a), test.owner)).Step()
		if step.Intent == nil {
			t.Errorf("%s: %v", name, step.Result)
			continue
		}
		var intent struct {
			Spec struct {
				Template struct{ Spec struct{ Affinity any } }
			}
		}
		if err := json.Unmarshal([]byte(text(t, step.Intent)), &intent); err != nil {
			t.Fatal(err)
		}
		if got := text(t, intent.Spec.Template.Spec.Affinity); got != test.intent {
			t.Errorf("%s: intends %s\nwant %s", name, got, test.intent)
		}
		if diff := cmp.Diff(test.unset, step.Unset); diff != "" {
			t.Errorf("%s: unset (-want +got):\n%s", name, diff)
		}
	}
	emptied := sample(live(onOne, has(&corev1.Affinity{}), owned(fieldOwner, affinity))).Step()
	if diff := cmp.Diff(fields(affinity), emptied.Unset); diff != "" {
		t.Errorf("an emptied map alone: unset (-want +got):\n%s", diff)
	}
	if none := sample(live(onOne, owned(fieldOwner, affinity))).Step(); none.Unset != nil {
		t.Errorf("nothing there: unset %v", none.Unset)
	}
}

func fields(names ...string) []string { return names }

func TestRolloutStuckOr(t *testing.T) {
	result := &patch.Result{State: patch.Blocked}
	stuck := func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}
		deadline(d)
	}
	for name, d := range map[string]*appsv1.Deployment{"no Deployment": nil, "not stuck": live()} {
		if got := sample(d).RolloutStuckOr(result); got != result {
			t.Errorf("%s: %v", name, got)
		}
	}
	const want = "Failed (RolloutStuck): The rollout of the sample Deployment, which another client shapes, does not finish; " +
		"if a new pod is Pending, delete the old one, whose anti-affinity may keep it off the node"
	if got := sample(live(stuck)).RolloutStuckOr(result); got.String() != want {
		t.Errorf("stuck: %v\nwant %s", got, want)
	}
}

func TestHealth(t *testing.T) {
	const (
		fine  = "InForce (AsExpected): All pods of the sample Deployment are available"
		look  = "look at the events and logs of its pods"
		logs  = "; if pods stay Pending or crash, look at their events and logs"
		up    = "Progressing (RollingOut): The sample Deployment is rolling out while available" + logs
		down  = "Progressing (RollingOut): The sample Deployment is rolling out, no pod is available yet" + logs
		stuck = "Failed (RolloutStuck): The rollout of the sample Deployment does not finish, other pods still serve; " + look
		dead  = "Failed (RolloutStuck): The rollout of the sample Deployment does not finish and no pod is available; " + look
	)
	counts := func(replicas, updated, available int32) change {
		return func(d *appsv1.Deployment) {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available}
		}
	}
	wants := func(n int32) change { return func(d *appsv1.Deployment) { d.Spec.Replicas = &n } }
	newer := func(d *appsv1.Deployment) { d.Generation = 2 }
	for name, test := range map[string]struct {
		changes []change
		want    string
	}{
		"one of one":               {[]change{wants(1), counts(1, 1, 1)}, fine},
		"one of one by default":    {[]change{counts(1, 1, 1), func(d *appsv1.Deployment) { d.Spec.Replicas = nil }}, fine},
		"one of one, late":         {[]change{wants(1), counts(1, 1, 1), deadline}, fine},
		"scaled to nothing":        {[]change{wants(0), counts(0, 0, 0)}, fine},
		"one of two":               {[]change{counts(2, 2, 1)}, up},
		"two of two":               {[]change{counts(2, 2, 2)}, fine},
		"none":                     {[]change{wants(1), counts(1, 1, 0)}, down},
		"a new pod and an old one": {[]change{wants(1), counts(2, 1, 1)}, up},
		"the old pod is not gone":  {[]change{wants(1), counts(2, 1, 2)}, up},
		"no new pod yet":           {[]change{wants(1), counts(1, 0, 1)}, up},
		"status of an older spec":  {[]change{wants(1), counts(1, 1, 1), newer}, up},
		"an older spec's deadline": {[]change{wants(1), counts(1, 1, 0), deadline, newer}, down},
		"stuck while serving":      {[]change{wants(1), counts(2, 1, 1), deadline}, stuck},
		"stuck and down":           {[]change{wants(1), counts(1, 1, 0), deadline}, dead},
		"paused": {[]change{wants(1), counts(1, 0, 1), func(d *appsv1.Deployment) { d.Spec.Paused = true }},
			"Progressing (RollingOut): The rollout of the sample Deployment is paused; resume it with oc rollout resume"},
	} {
		if got := operand.Health("sample Deployment", live(test.changes...)); got.String() != test.want {
			t.Errorf("%s: %v\nwant %s", name, got, test.want)
		}
	}
}
