package approver_test

import (
	"errors"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// situation is one combination of everything that the decision about the stock approver depends on, by names.
type situation struct {
	cluster, mode, optOut, stock, config, version string
	machines                                      approver.Presence
}

// The rule once more, as tables: the first row that fits a situation is what must come of it.
type row struct {
	when func(situation) bool
	then func(situation) string
}

func is(values ...string) func(string) bool {
	return func(have string) bool {
		for _, v := range values {
			if v == have {
				return true
			}
		}
		return false
	}
}

func always(string) bool { return true }

// on is a row about these fields; nil means that any value fits.
func on(stock, config, version func(string) bool, then string) row {
	fits := func(f func(string) bool, have string) bool { return f == nil || f(have) }
	return row{
		func(s situation) bool {
			return fits(stock, s.stock) && fits(config, s.config) && fits(version, s.version)
		},
		func(situation) string { return then },
	}
}

// before are the rows that do not depend on the mode.
var before = []row{
	{func(s situation) bool { return s.mode == "on" || s.cluster == "not read" }, says("[Failed Invalid]")},
	{func(s situation) bool { return s.cluster == "none" }, says("[Waiting WaitingForInfrastructure]")},
	{func(s situation) bool { return s.optOut != "" }, gives("[OptedOut OptedOut]")},
	{func(s situation) bool { return is("none", "deleted")(s.stock) }, gives("[NotNeeded NotNeeded]")},
	{func(s situation) bool { return s.cluster != "SingleReplica" }, gives("[NotNeeded NotNeeded]")},
	{func(s situation) bool { return s.machines == approver.Unknown }, says("[Waiting WaitingForMachines]")},
	{func(s situation) bool { return s.machines == approver.Present }, gives("[NotNeeded NotNeeded]")},
}

// byMode are the rows of a single control-plane node without Machines.
var byMode = map[string][]row{
	"node-client-off": {
		on(nil, is("none", "text"), nil, "ApplyConfig [Progressing Restarting]"),
		on(nil, is("false"), nil, "[Blocked FieldOwnedByOther]"),
		on(nil, is("broken"), nil, "[Failed Invalid]"),
		on(nil, is("line taken out"), nil, "[Reverted Reverted]"),
		// The flow is disabled.
		on(is("stopped by us"), nil, nil, "ReleaseDeployment [Progressing Restarting]"),
		on(nil, nil, is("claimed", "claimed, not seen"), "Unclaim [Progressing Restarting]"),
		on(is("restarted", "restarted before"), is("disabled"), nil, "ReleaseDeployment [Progressing Restarting]"),
		on(is("restarted"), is("ours"), nil, "[InForce AsExpected]"),
		on(nil, is("ours", "ours in text"), nil, "ApplyDeployment [Progressing Restarting]"),
		on(nil, is("disabled"), nil, "[InForce AsExpected]"),
	},
	"off": {
		on(is("of a person"), nil, is("claimed", "claimed, not seen"), "Unclaim [Blocked FieldOwnedByOther]"),
		on(is("of a person"), nil, nil, "[Blocked FieldOwnedByOther]"),
		on(nil, nil, is("managed by a person"), "[Blocked FieldOwnedByOther]"),
		on(nil, nil, is("plain"), "Claim [Progressing TakingOver]"),
		on(is("stopped by us", "stopped by a person"), is("ours"), nil, "DeleteConfig [Progressing Restarting]"),
		on(is("stopped by us", "stopped by a person"), is("ours in text", "line taken out"), nil, "RestoreConfig [Progressing Restarting]"),
		on(is("stopped by us", "stopped by a person"), nil, nil, "[InForce AsExpected]"),
		on(nil, nil, is("claimed, not seen"), "[Progressing TakingOver]"),
		on(always, nil, nil, "ApplyDeployment [Progressing Restarting]"),
	},
}

// released are the rows of what is given back first.
var released = []row{
	on(nil, is("ours"), nil, "DeleteConfig"),
	on(nil, is("ours in text", "line taken out"), nil, "RestoreConfig"),
	on(is("restarted", "restarted before", "stopped by us"), nil, nil, "ReleaseDeployment"),
	on(nil, nil, is("claimed", "claimed, not seen"), "Unclaim"),
	on(nil, nil, nil, ""),
}

func says(text string) func(situation) string { return func(situation) string { return text } }

func gives(result string) func(situation) string {
	return func(s situation) string {
		if action := first(released, s); action != "" {
			return action + " " + result
		}
		return result
	}
}

func first(rows []row, s situation) string {
	for _, r := range rows {
		if r.when(s) {
			return r.then(s)
		}
	}
	return "no row"
}

func (s situation) wanted() string {
	if text := first(before, s); text != "no row" {
		return text
	}
	return first(byMode[s.mode], s)
}

var (
	clusters = map[string]*topology.Cluster{
		"none": nil, "not read": {}, "SingleReplica": clusterOf(single), "HighlyAvailable": clusterOf(configv1.HighlyAvailableTopologyMode),
		"HighlyAvailableArbiter": clusterOf(configv1.HighlyAvailableArbiterMode), "DualReplica": clusterOf(configv1.DualReplicaTopologyMode),
		"External": clusterOf(configv1.ExternalTopologyMode), "": clusterOf(""), "Hexagonal": clusterOf("Hexagonal"),
		// The topology of the workers decides nothing.
		"SingleReplica workers": {ControlPlane: topology.ReadingOf(configv1.HighlyAvailableTopologyMode), Infrastructure: topology.ReadingOf(single)},
	}
	stocks = map[string]func() *appsv1.Deployment{
		"none": func() *appsv1.Deployment { return nil },
		"deleted": func() *appsv1.Deployment {
			d := stock()
			d.DeletionTimestamp = &metav1.Time{}
			return d
		},
		"running":          stock,
		"restarted":        func() *appsv1.Deployment { return restarted("c.made") },
		"restarted before": func() *appsv1.Deployment { return restarted("c.4") },
		"stopped by us":    stopped,
		"stopped by a person": func() *appsv1.Deployment {
			d := stock()
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{}
			return d
		},
		"of a person": func() *appsv1.Deployment {
			d := stock()
			d.ManagedFields = append(d.ManagedFields, owned("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`))
			return d
		},
	}
	configs = map[string]func() *corev1.ConfigMap{
		"none":         func() *corev1.ConfigMap { return nil },
		"text":         func() *corev1.ConfigMap { return config("a: 1\n") },
		"disabled":     func() *corev1.ConfigMap { return config("nodeClientCert: {disabled: true}\n") },
		"false":        func() *corev1.ConfigMap { return config("nodeClientCert: {disabled: false}\n") },
		"broken":       func() *corev1.ConfigMap { return config("a: [\n") },
		"ours":         func() *corev1.ConfigMap { return edited("", "made") },
		"ours in text": func() *corev1.ConfigMap { return edited("a: 1\n", "5/kubectl-edit") },
		"line taken out": func() *corev1.ConfigMap {
			c := edited("a: 1\n", "5/kubectl-edit")
			c.Data[approver.ConfigKey] = "a: 1\n"
			return c
		},
	}
	versions = map[string]func() *configv1.ClusterVersion{
		"none":    func() *configv1.ClusterVersion { return nil },
		"plain":   func() *configv1.ClusterVersion { return version() },
		"claimed": func() *configv1.ClusterVersion { return claimed(approver.FieldOwner, true) },
		"claimed, not seen": func() *configv1.ClusterVersion {
			v := claimed(approver.FieldOwner, true)
			v.Generation = 3
			return v
		},
		"claimed by a person": func() *configv1.ClusterVersion { return claimed("kubectl", true) },
		"managed by a person": func() *configv1.ClusterVersion { return claimed("kubectl", false) },
	}
	presences = []approver.Presence{approver.Unknown, approver.Absent, approver.Present}
)

func (s situation) inputs() (in approver.PatchInputs, exists bool) {
	in = approver.PatchInputs{Cluster: clusters[s.cluster], Mode: approver.Mode(s.mode), Machines: s.machines,
		Deployment: stocks[s.stock](), ConfigMap: configs[s.config](), ClusterVersion: versions[s.version]()}
	annotations := map[string]string{patch.OptOutAnnotation: approver.Name}
	switch {
	case s.optOut == "Deployment" && in.Deployment != nil:
		in.Deployment.Annotations = annotations
	case s.optOut == "ClusterVersion" && in.ClusterVersion != nil:
		in.ClusterVersion.Annotations = annotations
	case s.optOut == "ConfigMap" && in.ConfigMap != nil:
		annotations[approver.EditAnnotation] = in.ConfigMap.Annotations[approver.EditAnnotation]
		in.ConfigMap.Annotations = annotations
	case s.optOut != "":
		return in, false
	}
	return in, true
}

func (s situation) got(in approver.PatchInputs) string {
	d := approver.Desired(in)
	result := approver.Observe(in)
	if d.Result != nil {
		result = *d.Result
	}
	text := fmt.Sprintf("[%s %s]", result.State, result.Reason)
	if d.Action != approver.Nothing {
		text = string(d.Action) + " " + text
	}
	return text
}

// TestDesiredByTheTables shows R-SNO-12 and R-APP-1: in every combination of what the decision depends on, it is what
// the tables say.
func TestDesiredByTheTables(t *testing.T) {
	seen, wrong := map[string]int{}, 0
	each := func(s situation) {
		in, exists := s.inputs()
		if !exists || wrong > 20 {
			return
		}
		want := s.wanted()
		seen[want]++
		if got := s.got(in); got != want {
			wrong++
			t.Errorf("%+v:\n got %s\nwant %s", s, got, want)
		}
	}
	for cluster := range clusters {
		for _, machines := range presences {
			for _, mode := range []string{"node-client-off", "off", "on"} {
				for stock := range stocks {
					for config := range configs {
						for version := range versions {
							// Opting out is the same everywhere, so that it is tried only where without it something would be done.
							optOuts := []string{""}
							if cluster == "SingleReplica" {
								optOuts = []string{"", "Deployment", "ConfigMap", "ClusterVersion"}
							}
							for _, optOut := range optOuts {
								each(situation{cluster, mode, optOut, stock, config, version, machines})
							}
						}
					}
				}
			}
		}
	}
	if len(seen) < 20 || seen["no row"] > 0 {
		t.Errorf("the tables do not cover what there is: %v", seen)
	}
}

// TestEnabledByTheTable shows R-APP-1. Enabled and Desired never disagree: where an operator may approve by itself,
// nothing is taken from the stock approver.
func TestEnabledByTheTable(t *testing.T) {
	yes, no := "true", "false"
	for cluster, want := range map[string]map[approver.Presence]string{
		"not read":               {approver.Unknown: "not read", approver.Absent: "not read", approver.Present: "not read"},
		"SingleReplica":          {approver.Unknown: "unknown", approver.Absent: no, approver.Present: yes},
		"HighlyAvailable":        {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"HighlyAvailableArbiter": {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"DualReplica":            {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"External":               {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"":                       {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"Hexagonal":              {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
		"SingleReplica workers":  {approver.Unknown: "unknown", approver.Absent: yes, approver.Present: yes},
	} {
		for _, machines := range append([]approver.Presence{7}, presences...) {
			may, err := approver.Enabled(approver.Host{Cluster: *clusters[cluster], Machines: machines})
			got := fmt.Sprint(may)
			switch {
			case err != nil && may:
				t.Errorf("%q, %d: true with %v", cluster, machines, err)
			case errors.Is(err, topology.ErrClusterNotRead) && errors.Is(err, approver.ErrInputs):
				got = "not read"
			case errors.Is(err, approver.ErrInputs):
				got = "unknown"
			}
			known := machines
			if machines == 7 { // a value that nobody has defined
				known = approver.Unknown
			}
			if got != want[known] {
				t.Errorf("%q, %d: %s (%v), want %s", cluster, machines, got, err, want[known])
			}
			in := inputs(func(in *approver.PatchInputs) { in.Cluster, in.Machines = clusters[cluster], machines })
			if wrote := approver.Desired(in).Action; (wrote != approver.Nothing) != (got == no) {
				t.Errorf("%q, %d: Enabled is %s, and %q is written", cluster, machines, got, wrote)
			}
		}
	}
}
