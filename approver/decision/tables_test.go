// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// testCase is one combination of the inputs of a decision, by name.
type testCase struct {
	cluster, mode, optOut, stock, config, version string
	machines                                      approver.MachinePresence
}

// row is an expected decision. The first row that matches applies. | separates alternatives, and empty matches all.
type row struct{ stock, config, version, then string }

const (
	anyClaim = "claimed|claimed, not observed"
	off      = "stopped by module|stopped by a person"
)

// byMode is for a single control-plane node without Machines.
var byMode = map[string][]row{
	"node-client-off": {
		{"", "none|text", "", "ApplyConfig [Progressing Restarting]"},
		{"", "false", "", "[Blocked FieldOwnedByOther]"},
		{"", "broken", "", "[Failed Invalid]"},
		{"", "line removed", "", "[Reverted Reverted]"},
		// The flow is disabled.
		{"stopped by module", "", "", "ReleaseDeployment [Progressing Restarting]"},
		{"", "", anyClaim, "Unclaim [Progressing Restarting]"},
		{"restarted|restarted before", "disabled", "", "ReleaseDeployment [Progressing Restarting]"},
		{"restarted", "edited", "", "[InForce AsExpected]"},
		{"", "edited|edited text", "", "ApplyDeployment [Progressing Restarting]"},
		{"", "disabled", "", "[InForce AsExpected]"},
	},
	"off": {
		{"replicas of a person", "", anyClaim, "Unclaim [Blocked FieldOwnedByOther]"},
		{"replicas of a person", "", "", "[Blocked FieldOwnedByOther]"},
		{"", "", "managed by a person", "[Blocked FieldOwnedByOther]"},
		{"", "", "plain", "Claim [Progressing TakingOver]"},
		{off, "edited", "", "DeleteConfig [Progressing Restarting]"},
		{off, "edited text|line removed", "", "RestoreConfig [Progressing Restarting]"},
		{off, "", "", "[InForce AsExpected]"},
		{"", "", "claimed, not observed", "[Progressing TakingOver]"},
		{"", "", "", "ApplyDeployment [Progressing Restarting]"},
	},
}

// releases is for all cases in which the patch is not wanted.
var releases = []row{
	{"", "edited", "", "DeleteConfig "},
	{"", "edited text|line removed", "", "RestoreConfig "},
	{"restarted|restarted before|stopped by module", "", "", "ReleaseDeployment "},
	{"", "", anyClaim, "Unclaim "},
	{"", "", "", ""},
}

func (c testCase) first(rows []row) string {
	fits := func(alternatives, value string) bool {
		return alternatives == "" || slices.Contains(strings.Split(alternatives, "|"), value)
	}
	for _, r := range rows {
		if fits(r.stock, c.stock) && fits(r.config, c.config) && fits(r.version, c.version) {
			return r.then
		}
	}
	return "no row"
}

func (c testCase) wanted() string {
	switch {
	case c.mode == "on" || strings.Contains(c.cluster, "not read"):
		return "[Failed Invalid]"
	case c.cluster == "none":
		return "[Waiting WaitingForInfrastructure]"
	case c.optOut != "":
		return c.first(releases) + "[OptedOut OptedOut]"
	case c.stock == "none" || c.stock == "deleted" || c.cluster != "SingleReplica" || c.machines == approver.MachinesPresent:
		return c.first(releases) + "[NotNeeded NotNeeded]"
	case c.machines == approver.MachinesUnknown:
		return "[Waiting WaitingForMachines]"
	}
	return c.first(byMode[c.mode])
}

var (
	clusters = map[string]*topology.Cluster{
		"none": nil, "not read": {},
		"workers not read": {ControlPlane: topology.ReadingOf(single)}, "control plane not read": {Infrastructure: topology.ReadingOf(single)},
		"SingleReplica": clusterOf(single), "HighlyAvailable": clusterOf(configv1.HighlyAvailableTopologyMode),
		"HighlyAvailableArbiter": clusterOf(configv1.HighlyAvailableArbiterMode), "DualReplica": clusterOf(configv1.DualReplicaTopologyMode),
		"External": clusterOf(configv1.ExternalTopologyMode), "": clusterOf(""), "Hexagonal": clusterOf("Hexagonal"),
		// The topology of the workers has no effect.
		"SingleReplica workers": {ControlPlane: topology.ReadingOf(configv1.HighlyAvailableTopologyMode), Infrastructure: topology.ReadingOf(single)},
	}
	stocks = map[string]func() *appsv1.Deployment{
		"none":                 func() *appsv1.Deployment { return nil },
		"deleted":              with(stock, func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} }),
		"running":              stock,
		"restarted":            func() *appsv1.Deployment { return restarted("c.made") },
		"restarted before":     func() *appsv1.Deployment { return restarted("c.4") },
		"stopped by module":    stoppedByModule,
		"stopped by a person":  func() *appsv1.Deployment { return stopped(stock()) },
		"replicas of a person": with(stock, func(d *appsv1.Deployment) { d.ManagedFields = append(d.ManagedFields, owned("kubectl", ownsReplicas)) }),
	}
	editedText = func() *corev1.ConfigMap { return edited("a: 1\n", "5/kubectl-edit") }
	configs    = map[string]func() *corev1.ConfigMap{
		"none":         func() *corev1.ConfigMap { return nil },
		"text":         func() *corev1.ConfigMap { return config("a: 1\n") },
		"disabled":     func() *corev1.ConfigMap { return config("nodeClientCert: {disabled: true}\n") },
		"false":        func() *corev1.ConfigMap { return config("nodeClientCert: {disabled: false}\n") },
		"broken":       func() *corev1.ConfigMap { return config("a: [\n") },
		"edited":       func() *corev1.ConfigMap { return edited("", "made") },
		"edited text":  editedText,
		"line removed": with(editedText, func(c *corev1.ConfigMap) { c.Data[decision.ConfigKey] = "a: 1\n" }),
	}
	claimedByModule = func() *configv1.ClusterVersion { return claimed(decision.FieldOwner, true) }
	versions        = map[string]func() *configv1.ClusterVersion{
		"none":                  func() *configv1.ClusterVersion { return nil },
		"plain":                 func() *configv1.ClusterVersion { return version() },
		"claimed":               claimedByModule,
		"claimed, not observed": with(claimedByModule, func(v *configv1.ClusterVersion) { v.Generation = 3 }),
		"claimed by a person":   func() *configv1.ClusterVersion { return claimed("kubectl", true) },
		"managed by a person":   func() *configv1.ClusterVersion { return claimed("kubectl", false) },
	}
	presences = []approver.MachinePresence{approver.MachinesUnknown, approver.MachinesAbsent, approver.MachinesPresent}
)

func (c testCase) inputs() (in decision.Inputs, exists bool) {
	in = decision.Inputs{Cluster: clusters[c.cluster], Mode: decision.Mode(c.mode), Machines: c.machines,
		Deployment: stocks[c.stock](), ConfigMap: configs[c.config](), ClusterVersion: versions[c.version]()}
	annotations := map[string]string{patch.OptOutAnnotation: approver.Name}
	switch {
	case c.optOut == "Deployment" && in.Deployment != nil:
		in.Deployment.Annotations = annotations
	case c.optOut == "ClusterVersion" && in.ClusterVersion != nil:
		in.ClusterVersion.Annotations = annotations
	case c.optOut == "ConfigMap" && in.ConfigMap != nil:
		annotations[decision.EditAnnotation] = in.ConfigMap.Annotations[decision.EditAnnotation]
		in.ConfigMap.Annotations = annotations
	case c.optOut != "":
		return in, false
	}
	return in, true
}

// R-SNO-12 and R-APP-1: every combination follows the tables. testdata/outcomes.txt has all messages.
func TestDecideByTheTables(t *testing.T) {
	seen, outcomes, wrong := map[string]int{}, sets.New[string](), 0
	each := func(s testCase) {
		in, exists := s.inputs()
		if !exists || wrong > 20 {
			return
		}
		want := s.wanted()
		seen[want]++
		d := decision.Decide(in)
		result := resultOf(in, d)
		outcomes.Insert(result.String())
		action, _ := writeOf(d)
		if got := strings.TrimSpace(fmt.Sprintf("%s [%s %s]", action, result.State, result.Reason)); got != want {
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
							// The opt-out is tried only where the module would write.
							optOuts := []string{""}
							if cluster == "SingleReplica" {
								optOuts = []string{"", "Deployment", "ConfigMap", "ClusterVersion"}
							}
							for _, optOut := range optOuts {
								each(testCase{cluster, mode, optOut, stock, config, version, machines})
							}
						}
					}
				}
			}
		}
	}
	if len(seen) < 20 || seen["no row"] > 0 {
		t.Errorf("the tables do not cover all cases: %v", seen)
	}
	if diff := cmp.Diff(strings.Split(read(t, "testdata/outcomes.txt"), "\n"), append(sets.List(outcomes), "")); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// R-APP-1: Decide writes only where Enabled is false.
func TestEnabledByTheTable(t *testing.T) {
	for name, cluster := range clusters {
		for _, machines := range append([]approver.MachinePresence{7}, presences...) { // 7 is undefined
			if cluster == nil {
				continue
			}
			read, known := !strings.Contains(name, "not read"), machines == approver.MachinesAbsent || machines == approver.MachinesPresent
			want := read && known && (machines == approver.MachinesPresent || name != "SingleReplica")
			may, err := approver.Enabled(approver.Host{Cluster: *cluster, Machines: machines})
			if may != want || errors.Is(err, approver.ErrInputs) == (read && known) || errors.Is(err, topology.ErrClusterNotRead) == read {
				t.Errorf("%q, %d: %t, %v; want %t", name, machines, may, err, want)
			}
			in := inputs(func(in *decision.Inputs) { in.Cluster, in.Machines = cluster, machines })
			if wrote, _ := writeOf(decision.Decide(in)); (wrote != "") != (err == nil && !may) {
				t.Errorf("%q, %d: Enabled is %t, %v, and %q is written", name, machines, may, err, wrote)
			}
		}
	}
}

func with[T any](make func() *T, change func(*T)) func() *T {
	return func() *T {
		object := make()
		change(object)
		return object
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
