// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/conformance/report"
)

const (
	// ControlPlanePool is the MachineConfigPool of the control plane.
	ControlPlanePool = "master"
	// KubeletFile is the kubelet's configuration in a rendered MachineConfig.
	KubeletFile = "/etc/kubernetes/kubelet.conf"
)

// gracefulShutdown requires a KubeletConfig with a grace period for the control plane's pool, and a rendered one.
func gracefulShutdown() Check {
	return Check{
		ID: "SNO-MCO-003", Title: "Kubelets of the control plane shut down gracefully on a single node", Module: machineConfig, Level: Extended, Tier: Static,
		Requirement: Requirement{"R-MCO-3", "graceful shutdown of the kubelet ends workloads safely at a restart"},
		Topologies:  []string{"SingleReplica"}, Needs: []string{"a machine-config operator"}, NeedsPool: true,
		NotApplicable: firstOf(func(s *State) string {
			operated := !s.Missing["kubeletconfigs.machineconfiguration.openshift.io"] && s.ControllerConfig != nil
			return unless(operated, "no machine-config operator reads a KubeletConfig")
		}, onlySingle, func(s *State) string {
			return unless(len(s.Nodes) <= 1, "other nodes exist, which would send requests to terminating pods")
		}),
		Run: func(in *Input) ([]report.Evidence, error) {
			const want = "more than 0"
			pool := in.State.Pool
			if pool == nil {
				return []report.Evidence{missingObject("MachineConfigPool " + ControlPlanePool)}, nil
			}
			selecting := "none"
			for _, config := range in.State.KubeletConfigs {
				period, _, err := unstructured.NestedString(config.Object, "spec", "kubeletConfig", "shutdownGracePeriod")
				if err == nil && positive(period) && selectsPool(config, pool.Labels) {
					selecting = config.GetName()
				}
			}
			rendered, period := "MachineConfig "+pool.Rendered, pool.ShutdownGracePeriod
			if pool.Rendered == "" {
				rendered, period = "MachineConfigPool "+pool.Name+", rendered configuration", "nothing is rendered"
			}
			return []report.Evidence{
				found("KubeletConfigs for MachineConfigPool "+pool.Name, "spec.kubeletConfig.shutdownGracePeriod", want, selecting, selecting != "none"),
				found(rendered, KubeletFile+", shutdownGracePeriod", want, period, positive(period)),
			}, nil
		},
		Controls: []Control{
			{Name: "no KubeletConfig", Change: onState(func(s *State) { s.KubeletConfigs = nil })},
			{Name: "the KubeletConfig is for another pool", Change: onPool(func(p *Pool) { p.Labels = map[string]string{"pool": "another"} })},
			{Name: "the rendered grace period is 0", Change: onPool(func(p *Pool) { p.ShutdownGracePeriod = "0s" })},
			{Name: "nothing is rendered", Change: onPool(func(p *Pool) { p.Rendered, p.ShutdownGracePeriod = "", "" })},
			{Name: "one more KubeletConfig", MustPass: true, Change: onState(func(s *State) {
				s.KubeletConfigs = append(s.KubeletConfigs, unstructured.Unstructured{Object: map[string]any{}})
			})},
		},
	}
}

func positive(period string) bool {
	length, err := time.ParseDuration(period)
	return err == nil && length > 0
}

// selectsPool returns false for a KubeletConfig without a selector.
func selectsPool(config unstructured.Unstructured, labels map[string]string) bool {
	object, found, err := unstructured.NestedMap(config.Object, "spec", "machineConfigPoolSelector")
	if err != nil || !found {
		return false
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, selector); err != nil {
		return false
	}
	return selects(selector, labels)
}

func onPool(change func(*Pool)) func(*Input) bool {
	return func(in *Input) bool {
		if in.State.Pool == nil {
			return false
		}
		change(in.State.Pool)
		return true
	}
}
