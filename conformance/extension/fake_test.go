// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

var update = flag.Bool("update", false, "update the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\nrun with -update to create it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun with -update if this is correct", file, diff)
	}
}

func someChecks() []catalogue.Check {
	change := func(*catalogue.Input) bool { return true }
	controls := []catalogue.Control{{Name: "a second replica", Change: change}, {Name: "an unrelated | label", MustPass: true, Change: change}}
	run := func(*catalogue.Input) ([]report.Evidence, error) { return nil, nil }
	single := []string{"SingleReplica"}
	many := []string{"HighlyAvailable", "DualReplica"}
	requirement := catalogue.Requirement{ID: "R-EXAMPLE-1", Sentence: "the router <runs> once"}
	return []catalogue.Check{
		{ID: "SNO-ING-001", Title: "The router has one pod", Module: "ingress", Requirement: requirement, Level: catalogue.Core, Tier: catalogue.Static, Topologies: single,
			Needs: []string{"a router"}, Controls: controls, Run: run},
		{ID: "SNO-ING-002", Title: "The router is spread", Module: "ingress", Requirement: requirement, Level: catalogue.Core, Tier: catalogue.Static, Topologies: many,
			Controls: controls, Run: run},
		{ID: "SNO-ING-003", Title: "A rollout ends", Module: "ingress", Requirement: requirement, Level: catalogue.Core, Tier: catalogue.Scheduled, Controls: controls, Run: run},
		{ID: "SNO-ETC-001", Title: "The guard is gone", Module: "etcdguard", Requirement: catalogue.Requirement{ID: "R-EXAMPLE-2", Sentence: "no guard"},
			Level: catalogue.Extended, Tier: catalogue.Static, Topologies: single, Controls: controls, Run: run},
		{ID: "SNO-ETC-002", Title: "A drain ends", Module: "etcdguard", Requirement: catalogue.Requirement{ID: "R-EXAMPLE-3", Sentence: "drains end"},
			Level: catalogue.Core, Tier: catalogue.Disruptive, Act: catalogue.DrainNodes, Controls: append(controls, catalogue.Control{Name: "a drain that does not end"}), Run: run},
	}
}

const (
	onePod = "[sno-conformance] [SNO-ING-001] The router has one pod"
	spread = "[sno-conformance] [SNO-ING-002] The router is spread"
	rolls  = "[sno-conformance] [SNO-ING-003] A rollout ends"
	guard  = "[sno-conformance] [SNO-ETC-001] The guard is gone"
	drains = "[sno-conformance] [SNO-ETC-002] A drain ends"
)

// fake is a runner with fixed results. Checks that are not in ends pass.
type fake struct {
	ends map[string]report.Status
	// err fails Start, errs fails single checks, closing fails Close.
	err     error
	errs    map[string]error
	closing error
	// hang makes Result wait for the end of the context.
	hang bool

	mu        sync.Mutex
	selection runner.Selection
	requested []string
	collected []string
	closed    int
}

func (f *fake) Start(context.Context) error { return f.err }

func (f *fake) Result(ctx context.Context, id string) (report.Result, error) {
	f.mu.Lock()
	f.requested = append(f.requested, id)
	f.mu.Unlock()
	if f.hang {
		<-ctx.Done()
		return report.Result{}, ctx.Err()
	}
	return f.result(id), f.errs[id]
}

func (f *fake) result(id string) report.Result {
	all := someChecks()
	result := all[slices.IndexFunc(all, func(c catalogue.Check) bool { return c.ID == id })].Result()
	result.Status, result.Seconds = f.ends[id], 1.5
	if result.Status == "" {
		result.Status = report.Passed
	}
	controls := []report.Control{{Name: "a second replica", Want: "fail", Detected: true}, {Name: "an unrelated label", Want: "pass", Detected: true}}
	evidence := report.Evidence{Object: "Deployment openshift-ingress/router-default", Field: "spec.replicas", Want: "1", Got: "1", Held: true}
	switch result.Status {
	case report.Passed:
		result.Controls = controls
		result.Figures = []report.Figure{{Name: "unavailable", Value: 0.25, Unit: "s"}}
	case report.Failed:
		evidence.Got, evidence.Held = "2", false
	case report.Inconclusive:
		controls[0].Detected, controls[0].Got = false, "it passed"
		result.Controls, result.Reason = controls, "controls with a wrong result: a second replica"
	case report.Skipped, report.NotApplicable:
		result.Reason = "the router does not exist"
		return result
	}
	result.Evidence = []report.Evidence{evidence}
	return result
}

func (f *fake) Report() report.Report {
	r := report.Report{
		Scenario: "test", Provider: "fake",
		Topology: report.Topology{Observed: report.Modes{ControlPlane: "SingleReplica", Infrastructure: "SingleReplica"}},
	}
	for _, check := range someChecks() {
		result := f.result(check.ID)
		if !slices.Contains(f.selection.IDs, check.ID) {
			result = check.Result()
			result.Reason = "it was not selected"
		}
		r.Results = append(r.Results, result)
	}
	return r
}

func (f *fake) Collect(_ context.Context, folder string) error {
	f.collected = append(f.collected, filepath.Base(folder))
	return nil
}

func (f *fake) Close(ctx context.Context) error {
	f.closed++
	f.closing = errors.Join(f.closing, ctx.Err())
	return f.closing
}

func (f *fake) run(t *testing.T, in io.Reader, args ...string) (code int, out, progress string) {
	t.Helper()
	return f.runContext(t.Context(), in, args...)
}

func (f *fake) runContext(ctx context.Context, in io.Reader, args ...string) (code int, out, progress string) {
	var stdout, stderr bytes.Buffer
	p := Program{
		In: in, Out: &stdout, Err: &stderr, Catalogue: someChecks(),
		Build: Build{Commit: "0123abc", BuildDate: "2026-11-20T10:00:00Z", GitTreeState: "clean"},
		Now:   func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		Provider: func(_ context.Context, o ClusterOptions) (cluster.Target, error) {
			if o.Kubeconfig == "none" {
				return cluster.Target{}, errors.New("no usable kubeconfig")
			}
			return cluster.Target{}, nil
		},
		Connect: func(_ context.Context, _ cluster.Target, selection runner.Selection) (runner.Running, error) {
			f.selection = selection
			return f, nil
		},
	}
	code = p.Main(ctx, args)
	return code, stdout.String(), stderr.String()
}
