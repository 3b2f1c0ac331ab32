// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/bench"
)

func TestRows(t *testing.T) {
	ours := Report{BootTimes: BootTimes{Ready: 9 * time.Second, Pod: 11 * time.Second}, Memory: 900 << 20}
	kubeadm := Report{BootTimes: BootTimes{Ready: 10 * time.Second, Pod: 10 * time.Second}, Memory: 800 << 20}
	for name, test := range map[string]struct {
		reports Reports
		want    []bench.Row
	}{
		"nothing": {Reports{}, nil},
		"alone": {Reports{"all-in-one": {BootTimes: ours.BootTimes}}, []bench.Row{
			{What: "All in one, from the start of the machine to a Ready node", Measured: "9.0 s", Bound: "-", Compared: "-", Held: true},
			{What: "All in one, from the start of the machine to a running pod", Measured: "11.0 s", Bound: "-", Compared: "-", Held: true},
		}},
		"compared": {Reports{"all-in-one": ours, "kubeadm": kubeadm}, []bench.Row{
			{What: "All in one, from the start of the machine to a Ready node", Measured: "9.0 s", Bound: "max 1.0 times kubeadm's", Compared: "kubeadm 10.0 s, ratio 0.90", Held: true},
			{What: "All in one, from the start of the machine to a running pod", Measured: "11.0 s", Bound: "max 1.0 times kubeadm's", Compared: "kubeadm 10.0 s, ratio 1.10"},
			{What: "All in one, memory of the machine at rest", Measured: "900 MiB", Bound: "-", Compared: "kubeadm 800 MiB", Held: true},
		}},
		"in place": {Reports{"in-place": {
			Steps:   []StepTime{{Step: "config", Duration: time.Second}, {Step: "live", Duration: 20 * time.Second, Phases: []StepTime{{Step: "render", Duration: 3 * time.Second}, {Step: "a", Duration: 200 * time.Millisecond}, {Step: "b", Duration: 100 * time.Millisecond}}}},
			Configs: []int{1 << 20, 28 << 20}, Restarts: []time.Duration{7 * time.Second, 8 * time.Second},
		}}, []bench.Row{
			{What: "Bootstrap in place, live", Measured: "20.0 s", Bound: "-", Compared: "-", Held: true},
			{What: "Bootstrap in place, live, phase render", Measured: "3.0 s", Bound: "-", Compared: "-", Held: true},
			{What: "Bootstrap in place, live, all other phases", Measured: "0.3 s", Bound: "-", Compared: "-", Held: true},
			{What: "Bootstrap in place, configs", Measured: "live system 1024.0 KiB, installed node 28.0 MiB", Bound: "-", Compared: "-", Held: true},
			{What: "Bootstrap in place, no API when the live system restarts into the node", Measured: "7.0 s", Bound: "-", Compared: "-", Held: true},
			{What: "Bootstrap in place, no API when the node restarts", Measured: "8.0 s", Bound: "-", Compared: "-", Held: true},
		}},
	} {
		if diff := cmp.Diff(test.want, test.reports.Rows()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only times between two answers count.
func TestOutages(t *testing.T) {
	var o outages
	o.recordAnswer()
	if o.longest != 0 {
		t.Errorf("%s before there was an answer", o.longest)
	}
	o.last = o.last.Add(-time.Minute)
	o.recordAnswer()
	o.recordAnswer()
	if got := o.reset(); got.Round(time.Second) != time.Minute {
		t.Errorf("%s, want a minute", got)
	}
	if got := o.reset(); got != 0 {
		t.Errorf("%s after a reset", got)
	}
}

func TestRunNamesSteps(t *testing.T) {
	for _, test := range []struct{ from, until, want string }{
		{"disk", "", `in-place has config, live, `},
		{"", "disk", `not "disk"`},
		{"checks", "live", "live is before checks"},
	} {
		m := &Machine{}
		if _, err := m.Run(t.Context(), InPlace, test.from, test.until); !errors.Is(err, errNoStep) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("from %q until %q: %v", test.from, test.until, err)
		}
	}
}

// Steps run in order, and an error names its step.
func TestWalk(t *testing.T) {
	failed := errors.New("no disk")
	var ran []string
	one := func(name string, err error) step {
		return step{name, func(_ context.Context, m *Machine) error {
			ran = append(ran, name)
			m.phases = []StepTime{{Step: "phase of " + name}}
			return err
		}}
	}
	m := &Machine{}
	err := m.runSteps(t.Context(), []step{one("a", nil), one("b", failed), one("c", nil)}, 1, 4)
	if !errors.Is(err, failed) || !strings.HasPrefix(err.Error(), "b: ") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ran); diff != "" {
		t.Error(diff)
	}
	if len(m.report.Steps) != 1 || m.report.Steps[0].Step != "a" || m.report.Steps[0].Phases[0].Step != "phase of a" {
		t.Errorf("%+v", m.report.Steps)
	}
}
