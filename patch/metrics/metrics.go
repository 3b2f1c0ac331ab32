// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the sno_* metrics. A constructor registers them: a host that vendors a module decides where.
package metrics

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// Names of the metrics.
const (
	PatchInForce = "sno_patch_in_force"
	ApplyTotal   = "sno_apply_total"
	Conflicts    = "sno_conflicts_total"
	Blocked      = "sno_blocked"
	BuildInfo    = "sno_build_info"
)

// Metrics holds the metrics of all modules of a process.
type Metrics struct {
	inForce   *prometheus.GaugeVec
	applies   *prometheus.CounterVec
	conflicts *prometheus.CounterVec
	blocked   *prometheus.GaugeVec

	mu      sync.Mutex
	reasons map[[2]string]string // of blocked, by module and object
}

// New registers the metrics. It fails if the registry has one of the names.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		inForce: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: PatchInForce, Help: "1 when the module's patch is on the object, 0 when it is not.",
		}, []string{"module", "object"}),
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: ApplyTotal, Help: "Outcomes of reconciling a patched object, by kind; only applied and released are writes.",
		}, []string{"module", "result"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: Conflicts, Help: "Fields of the intent that another field manager owned.",
		}, []string{"module", "field_manager"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: Blocked, Help: "1 for the reason that keeps a patch of the module from being in force.",
		}, []string{"module", "reason"}),
		reasons: map[[2]string]string{},
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: BuildInfo, Help: "1, with the version of the program as labels.", ConstLabels: buildLabels(),
	}, func() float64 { return 1 })
	for _, c := range []prometheus.Collector{m.inForce, m.applies, m.conflicts, m.blocked, build} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering sno metrics: %w", err)
		}
	}
	return m, nil
}

func buildLabels() prometheus.Labels {
	labels := prometheus.Labels{"version": "unknown", "revision": "unknown", "go_version": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["version"], labels["go_version"] = info.Main.Version, info.GoVersion
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				labels["revision"] = setting.Value
			}
		}
	}
	return labels
}

// RecordApply implements apply.Recorder.
func (m *Metrics) RecordApply(module string, kind apply.Kind) {
	m.applies.WithLabelValues(module, string(kind)).Inc()
}

// RecordConflict implements apply.Recorder.
func (m *Metrics) RecordConflict(module, fieldManager string) {
	m.conflicts.WithLabelValues(module, fieldManager).Inc()
}

// RecordResult sets the gauges of one object.
func (m *Metrics) RecordResult(module, object string, result patch.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inForce := 0.0
	if result.State == patch.InForce || result.State == patch.Progressing {
		inForce = 1
	}
	m.inForce.WithLabelValues(module, object).Set(inForce)

	key, blocked := [2]string{module, object}, !result.OK() && result.State != patch.Progressing
	before := m.reasons[key]
	delete(m.reasons, key)
	if blocked {
		m.reasons[key] = result.Reason
		m.blocked.WithLabelValues(module, result.Reason).Set(1)
	}
	for other, reason := range m.reasons {
		if other[0] == module && reason == before {
			return
		}
	}
	m.blocked.DeleteLabelValues(module, before)
}
