// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	mcfgv1ac "github.com/openshift/client-go/machineconfiguration/applyconfigurations/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/topology"
)

// shutdownInputs returns a cluster of one node with an ordinary and a critical pod with these grace periods in seconds.
func shutdownInputs(ordinary, critical int64, bound time.Duration) decision.Inputs {
	master := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-0", Labels: map[string]string{machineconfig.MasterRole: ""}}}
	pool := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool, Labels: map[string]string{machineconfig.MasterPoolLabel: ""}}}
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	pods := make([]corev1.Pod, 2)
	for i, grace := range []int64{ordinary, critical} {
		pods[i].Spec.NodeName, pods[i].Spec.TerminationGracePeriodSeconds = master.Name, ptr.To(grace)
	}
	pods[1].Spec.Priority = ptr.To[int32](2_000_001_000)
	return decision.Inputs{
		Inputs: machineconfig.Inputs{
			Cluster: &topology.Cluster{ControlPlane: topology.ReadingOf(configv1.SingleReplicaTopologyMode), Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode)},
			Nodes:   []corev1.Node{master}, Pods: pods,
		},
		Pools: []mcfgv1.MachineConfigPool{pool}, ShutdownBound: bound,
	}
}

// The kubelet's own loader must accept the KubeletConfig and read the intended values, and Ignition's own parser the
// MachineConfig, with the same period for logind.
func TestGracefulShutdownIsUnderstood(t *testing.T) {
	program, err := assets.EnsureProgram(t.Context(), filepath.Join("..", "..", "testcluster", "assets", "testdata", "kubelet-config", "main.go"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ordinary, critical int64
		bound              time.Duration
		// kubelet is the total and the part for critical pods in seconds, as its loader reads them.
		kubelet string
	}{
		{30, 30, 0, "60 30"},
		{0, 0, 0, "60 30"},
		{45, 31, 0, "120 60"},
		{3600, 30, 0, "180 30"},
		{1 << 40, 1 << 40, 0, "180 90"},
		{1, 3600, machineconfig.MinShutdownBound, "10 5"},
		{3600, 3600, 24 * time.Hour, "7200 3600"},
	} {
		t.Run(fmt.Sprintf("%d and %d seconds, bound %s", test.ordinary, test.critical, test.bound), func(t *testing.T) {
			decided := decision.Decide(shutdownInputs(test.ordinary, test.critical, test.bound))
			if decided.Result != nil {
				t.Fatal(decided.Result)
			}
			// The operator merges the fields into its kubelet.conf, which needs at least these.
			configuration := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": false}
			if err := json.Unmarshal(decided.KubeletConfig.Intent.(*mcfgv1ac.KubeletConfigApplyConfiguration).Spec.KubeletConfig.Raw, &configuration); err != nil {
				t.Fatal(err)
			}
			output, err := loadKubeletConfiguration(t, program, configuration)
			if err != nil || output != test.kubelet {
				t.Errorf("the kubelet reads %q, %v, want %q", output, err, test.kubelet)
			}
			delay := logindDelay(t, decided.MachineConfig.Intent.(*mcfgv1ac.MachineConfigApplyConfiguration).Spec.Config.Raw)
			if total, _, _ := strings.Cut(output, " "); delay != total {
				t.Errorf("logind waits %s s, the kubelet %s s", delay, total)
			}
		})
	}

	// Negative control: the kubelet's loader refuses invalid values.
	for name, configuration := range map[string]map[string]any{
		"critical pods longer than all": {"shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "20s"},
		"less than a second":            {"shutdownGracePeriod": "10ms"},
		"no duration":                   {"shutdownGracePeriod": "soon"},
		"a number":                      {"shutdownGracePeriod": 60},
	} {
		configuration["apiVersion"], configuration["kind"], configuration["failCgroupV1"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", false
		if output, err := loadKubeletConfiguration(t, program, configuration); err == nil {
			t.Errorf("%s: the kubelet accepts it as %q", name, output)
		}
	}
}

func loadKubeletConfiguration(t *testing.T, program string, configuration map[string]any) (string, error) {
	t.Helper()
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubelet.conf")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, file).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// logindDelay returns the InhibitDelayMaxSec of the only file of an Ignition config.
func logindDelay(t *testing.T, raw []byte) string {
	t.Helper()
	config, report, err := ignition.Parse(raw)
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("Ignition reports %v: %s", err, report.String())
	}
	if len(config.Storage.Files) != 1 || !strings.HasPrefix(config.Storage.Files[0].Path, "/etc/systemd/logind.conf.d/") {
		t.Fatalf("files %+v", config.Storage.Files)
	}
	content, err := dataurl.DecodeString(*config.Storage.Files[0].Contents.Source)
	if err != nil {
		t.Fatal(err)
	}
	delay, found := strings.CutPrefix(string(content.Data), "[Login]\nInhibitDelayMaxSec=")
	if !found {
		t.Fatalf("logind reads %q", content.Data)
	}
	return strings.TrimSpace(delay)
}
