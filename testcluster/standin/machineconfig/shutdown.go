// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	// shutdownConfig is the MachineConfig with the grace periods.
	shutdownConfig = "01-master-kubelet-shutdown"
	// periodsAnnotation has the grace periods, so that they need not be read from the files.
	periodsAnnotation = "machine-config-operator.example.com/grace-periods"
	recheck           = time.Minute // pods are not watched
)

// shutdownReconciler maintains the MachineConfig. Each change restarts the node.
type shutdownReconciler struct {
	reader
	settle time.Duration

	// wanted has been the result since then.
	wanted machineconfig.GracePeriods
	since  time.Time
}

func (r *shutdownReconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	operator, err := r.managed(ctx)
	if err != nil || operator == nil {
		return 0, err
	}
	s, err := r.read(ctx, r.client)
	if err != nil || s == nil {
		return 0, err
	}
	var pods corev1.PodList
	if len(s.nodes) == 1 {
		if err := r.direct.List(ctx, &pods, client.MatchingFields{"spec.nodeName": s.nodes[0].Name}); err != nil {
			return 0, fmt.Errorf("listing the pods of node %s: %w", s.nodes[0].Name, err)
		}
	}
	live, err := standin.Get(ctx, r.client, "", shutdownConfig, &mcfgv1.MachineConfig{})
	if err != nil {
		return 0, err
	}
	want := next(periodsOf(live), gracePeriods(*s, pods.Items))
	left := r.settling(want, periodsOf(live))
	if left <= 0 {
		if err := r.write(ctx, live, want); err != nil {
			return 0, err
		}
	}
	after := recheck
	if left > 0 {
		after = min(left, recheck)
	}
	return after, r.publish(ctx, operator, shutdownConditions(want, left))
}

// settling returns how long a change has to wait.
func (r *shutdownReconciler) settling(want, live machineconfig.GracePeriods) time.Duration {
	if want == live {
		r.wanted, r.since = want, time.Time{}
		return 0
	}
	if r.since.IsZero() || r.wanted != want {
		r.wanted, r.since = want, time.Now()
	}
	return r.settle - time.Since(r.since)
}

// next keeps the live periods if they are long enough: a shorter one is not worth a restart.
func next(live, want machineconfig.GracePeriods) machineconfig.GracePeriods {
	enough := live.Critical >= want.Critical && live.Total-live.Critical >= want.Total-want.Critical
	if want.Total > 0 && live.Total > 0 && enough {
		return live
	}
	return want
}

func (r *shutdownReconciler) write(ctx context.Context, live *mcfgv1.MachineConfig, want machineconfig.GracePeriods) error {
	switch {
	case want.Total == 0 && live == nil:
		return nil
	case want.Total == 0:
		return standin.Delete(ctx, r.client, live)
	case live == nil:
		return standin.Create(ctx, r.client, configFor(want))
	case periodsOf(live) == want:
		return nil
	}
	changed, desired := live.DeepCopy(), configFor(want)
	changed.Annotations, changed.Labels, changed.Spec.Config = desired.Annotations, desired.Labels, desired.Spec.Config
	return standin.Update(ctx, r.client, changed)
}

func periodsOf(config *mcfgv1.MachineConfig) machineconfig.GracePeriods {
	var periods machineconfig.GracePeriods
	if config == nil {
		return periods
	}
	total, critical, _ := strings.Cut(config.Annotations[periodsAnnotation], " ")
	var errs [2]error
	periods.Total, errs[0] = time.ParseDuration(total)
	periods.Critical, errs[1] = time.ParseDuration(critical)
	if errs[0] != nil || errs[1] != nil {
		return machineconfig.GracePeriods{}
	}
	return periods
}

// configFor returns the files that the kubelet and logind read. A real operator merges the first into kubelet.conf.
func configFor(periods machineconfig.GracePeriods) *mcfgv1.MachineConfig {
	file := func(path, contents string) map[string]any {
		return map[string]any{
			"path": path, "mode": 0o644, "overwrite": true,
			"contents": map[string]any{"source": "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(contents))},
		}
	}
	kubelet := fmt.Sprintf("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nshutdownGracePeriod: %s\nshutdownGracePeriodCriticalPods: %s\n",
		periods.Total, periods.Critical)
	logind := fmt.Sprintf("[Login]\nInhibitDelayMaxSec=%d\n", int64(periods.Total/time.Second))
	raw, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.2.0"},
		"storage": map[string]any{"files": []any{
			file("/etc/openshift/kubelet.conf.d/50-shutdown.conf", kubelet), file("/etc/systemd/logind.conf.d/90-shutdown.conf", logind),
		}},
	})
	if err != nil {
		panic(err) // strings and numbers only
	}
	config := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: shutdownConfig, Labels: map[string]string{machineconfig.RoleLabel: machineconfig.MasterPool},
		Annotations: map[string]string{periodsAnnotation: periods.Total.String() + " " + periods.Critical.String()},
	}}
	config.Spec.Config.Raw = raw
	return config
}
