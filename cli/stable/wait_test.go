// SPDX-License-Identifier: Apache-2.0

package stable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	later       = `="2026-11-01T13:00:00Z"`
	progressing = `ClusterOperator status.conditions.Progressing.status="True"`
	rebooted    = "Node status.nodeInfo.bootID=b"
	cordoned    = "Node spec.unschedulable=true"
)

// TestEveryChangeStartsAgain makes one change between two checks of a stable cluster (R-OPS-3).
func TestEveryChangeStartsAgain(t *testing.T) {
	const (
		console   = "Deployment openshift-console/console"
		apiServer = "Pod openshift-kube-apiserver/kube-apiserver-sno"
	)
	for name, test := range map[string]struct{ edits, want string }{
		"nothing":                       {"", ""},
		"heartbeat":                     {"Node metadata.resourceVersion='2'; Node status.conditions.Ready.lastHeartbeatTime" + later, ""},
		"message":                       {"ClusterOperator status.conditions.Available.message=All is well, again", ""},
		"request deleted after an hour": {"CertificateSigningRequest gone", ""},
		"workload of a user":            {"Deployment added to shop", ""},

		"ClusterVersion":          {"ClusterVersion status.conditions.Progressing.lastTransitionTime" + later, "ClusterVersion version"},
		"operator there and back": {"ClusterOperator status.conditions.Progressing.lastTransitionTime" + later, "ClusterOperator console"},
		"operator added":          {"ClusterOperator added", "ClusterOperator console-2"},
		"update there and done": {"ClusterVersion status.desired.version=4.20.2; ClusterOperator status.versions.1.version=4.20.2",
			"ClusterOperator console ClusterVersion version"},
		"pool rendered":        {"MachineConfigPool spec.configuration.name=rendered-2", "MachineConfigPool master"},
		"pool updated":         {"MachineConfigPool status.conditions.Updated.lastTransitionTime" + later, "MachineConfigPool master"},
		"node restarted":       {rebooted, "Node sno"},
		"node lost":            {"Node status.conditions.Ready.lastTransitionTime" + later, "Node sno"},
		"node replaced":        {"Node metadata.uid='2'", "Node sno"},
		"request and more":     {"CertificateSigningRequest added", "CertificateSigningRequest csr-1-2"},
		"Deployment":           {"Deployment metadata.generation=3; Deployment status.observedGeneration=3", console},
		"Deployment lost pods": {"Deployment status.conditions=[{type: Available, status: 'True'}]", console},
		"Deployment deleted":   {"Deployment gone", console},
		"DaemonSet":            {"DaemonSet metadata.generation=3; DaemonSet status.observedGeneration=3", "DaemonSet openshift-dns/dns-default"},
		"StatefulSet": {"StatefulSet status.currentRevision=c; StatefulSet status.updateRevision=c",
			"StatefulSet openshift-monitoring/prometheus-k8s"},
		"API server restarted":  {"Pod status.containerStatuses.1.restartCount=3", apiServer},
		"API server replaced":   {"Pod metadata.uid='2'", apiServer},
		"kind no longer served": {"MachineConfigPool unserved", "MachineConfigPool master kind MachineConfigPool"},
	} {
		t.Run(name, func(t *testing.T) {
			var history history
			before, now := Check(t.Context(), after(t, "")), Check(t.Context(), after(t, test.edits))
			history.observe(&before, installed)
			quiet, changed := history.observe(&now, installed.Add(time.Minute))
			if got := strings.Join(changed, " "); got != test.want || !now.IsStable() || (quiet == time.Minute) != (test.want == "") {
				t.Errorf("changed %q, settled %t, quiet for %s; want %q", got, now.IsStable(), quiet, test.want)
			}
		})
	}
}

// TestHistory checks every minute at the end of an installation. A change while a kind cannot be read is found.
// Requests and conditions record when they changed; a node does not, and it was schedulable in between.
func TestHistory(t *testing.T) {
	const pending = "CertificateSigningRequest status={}"
	var history history
	for i, step := range []struct {
		edits, changed, since string
		quiet                 time.Duration
	}{
		{edits: progressing, since: "ClusterOperator console 0s"},
		{changed: "ClusterOperator console"},
		{quiet: time.Minute},
		{edits: "Node unknown", since: "unknown"},
		{},
		{quiet: time.Minute},
		{edits: "Node unknown", since: "unknown"},
		{edits: rebooted, changed: "Node sno"},
		{edits: rebooted, quiet: time.Minute},
		{edits: rebooted, quiet: 2 * time.Minute},
		{edits: cordoned, changed: "Node sno", since: "Node sno 10m0s"},
		{edits: cordoned + "; " + pending, since: "Node sno 10m0s CertificateSigningRequest csr-1 0s"},
		{changed: "Node sno"},
		{edits: cordoned, changed: "Node sno", since: "Node sno 13m0s"},
	} {
		report := Check(t.Context(), after(t, step.edits))
		quiet, changed := history.observe(&report, installed.Add(time.Duration(i)*time.Minute))
		var since []string
		for _, c := range report.Unstable {
			since = append(since, c.Object, c.Since.Sub(installed).String())
		}
		if len(report.Unreadable) > 0 {
			since = append(since, "unknown")
		}
		if quiet != step.quiet || strings.Join(since, " ") != step.since || strings.Join(changed, " ") != step.changed {
			t.Errorf("check %d: quiet for %s, changing since %v, changed %v; want %v", i, quiet, since, changed, step)
		}
	}
}

// timeline is a cluster that changes: each state ends at its time, and last begins then.
type timeline struct {
	client.Reader
	start time.Time
	until map[time.Duration]*state
	last  *state
}

func (t timeline) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	for _, end := range slices.Sorted(maps.Keys(t.until)) {
		if time.Since(t.start) < end {
			return t.until[end].List(ctx, list, opts...)
		}
	}
	return t.last.List(ctx, list, opts...)
}

func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		settles        time.Duration
		last           string
		quiet, timeout time.Duration
		// waited is exact in a synctest bubble.
		waited time.Duration
		fails  bool
	}{
		"settled from the beginning":          {quiet: 5 * time.Minute, waited: 5 * time.Minute},
		"settled later":                       {settles: 12 * time.Minute, quiet: 5 * time.Minute, waited: 17 * time.Minute},
		"no period":                           {},
		"no period, settled later":            {settles: 15 * time.Second, waited: 20 * time.Second},
		"period as long as the timeout":       {quiet: 5 * time.Minute, timeout: 5 * time.Minute, waited: 5 * time.Minute},
		"period shorter than the interval":    {quiet: time.Second, waited: time.Second},
		"never settled":                       {last: progressing, quiet: 5 * time.Minute, waited: time.Hour, fails: true},
		"never settled, timeout mid-interval": {last: progressing, timeout: 65 * time.Second, waited: 65 * time.Second, fails: true},
		"settled too late":                    {settles: 57 * time.Minute, quiet: 5 * time.Minute, waited: time.Hour, fails: true},
		"unknown":                             {last: "Node unknown", quiet: 5 * time.Minute, waited: time.Hour, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Quiet: test.quiet, Timeout: test.timeout, Progress: io.Discard}
				if o.Timeout == 0 {
					o.Timeout = time.Hour
				}
				start := time.Now()
				out, err := Wait(t.Context(), timeline{nil, start, map[time.Duration]*state{test.settles: after(t, progressing)}, after(t, test.last)}, o)
				if waited := time.Since(start); waited != test.waited || out.Waited.Duration != waited {
					t.Errorf("took %s and reports %s, want %s", waited, out.Waited.Duration, test.waited)
				}
				if out.Stable == test.fails || errors.Is(err, ErrNotStable) != test.fails || (err != nil) != test.fails {
					t.Errorf("stable %t, %v", out.Stable, err)
				}
				if want := "the cluster is not stable after " + test.waited.String(); test.fails && err.Error() != want {
					t.Errorf("got the error %v, want %q", err, want)
				}
			})
		})
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Wait(ctx, after(t, progressing), Options{Timeout: time.Hour, Progress: io.Discard})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotStable) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var printed bytes.Buffer
		start := time.Now()
		since := `ClusterOperator status.conditions.Progressing.lastTransitionTime="` + start.Add(-time.Minute).Format(time.RFC3339) + `"; `
		const without = "MachineConfigPool unserved; "
		cluster := timeline{nil, start, map[time.Duration]*state{
			90 * time.Second: after(t, without+since+progressing), 2 * time.Minute: after(t, without),
		}, after(t, without+rebooted)}
		if _, err := Wait(t.Context(), cluster, Options{2 * time.Minute, 10 * time.Minute, &printed}); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"00:00:00 ClusterOperator console: Progressing=True (AsExpected), since 1999-12-31T23:59:00Z",
			"00:00:00 MachineConfigPool: skipped, the cluster does not serve it",
			"00:00:00 Waiting: 1 changing; 10m left",
			"00:01:00 Waiting: 1 changing; 9m left",
			"00:01:30 ClusterOperator console: has changed",
			"00:01:30 Stable for 0s of 2m; 8m30s left",
			"00:02:00 Node sno: has changed",
			"00:02:00 Stable for 0s of 2m; 8m left",
			"00:03:00 Stable for 60s of 2m; 7m left",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(printed.String()), "\n")); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestProgressIsBounded(t *testing.T) {
	var printed bytes.Buffer
	report := Report{Unstable: make([]UnstableObject, 100)}
	for i := range report.Unstable {
		report.Unstable[i].Object = fmt.Sprint("Node node-", i)
	}
	(&progress{options: Options{Progress: &printed}}).print(installed, 0, &report, 0, nil)
	if lines := strings.Count(printed.String(), "\n"); lines != maxLines+2 || !strings.Contains(printed.String(), "... and 80 more") {
		t.Errorf("%d lines:\n%s", lines, &printed)
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"negative period": {Quiet: -1, Timeout: time.Hour}, "no timeout": {Quiet: time.Minute}, "long period": {Quiet: 2 * time.Hour, Timeout: time.Hour},
	} {
		if _, err := Wait(t.Context(), nil, o); !errors.Is(err, errOptions) {
			t.Errorf("%s: got %v, want errOptions", name, err)
		}
	}
}
