package stable

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// TestEveryChangeStartsAgain shows R-OPS-3: it changes one thing between two looks at both of which nothing moves.
func TestEveryChangeStartsAgain(t *testing.T) {
	tests := map[string]struct {
		change func(*State)
		want   []string
	}{
		"nothing": {change: func(*State) {}},
		"heartbeat": {change: func(s *State) {
			s.Nodes[0].ResourceVersion, s.Nodes[0].Status.Conditions[0].LastHeartbeatTime = "2", later
		}},
		"message":                       {change: func(s *State) { s.ClusterOperators[0].Status.Conditions[0].Message = "All is well, again" }},
		"request deleted after an hour": {change: func(s *State) { s.Requests = nil }},
		"workload of a user": {change: func(s *State) {
			s.Deployments = append(s.Deployments, *s.Deployments[0].DeepCopy())
			s.Deployments[1].Namespace = "shop"
		}},

		"ClusterVersion": {
			func(s *State) { s.ClusterVersions[0].Status.Conditions[1].LastTransitionTime = later },
			[]string{"ClusterVersion version"},
		},
		"operator there and back": {
			func(s *State) { s.ClusterOperators[0].Status.Conditions[1].LastTransitionTime = later },
			[]string{"ClusterOperator console"},
		},
		"operator added": {
			func(s *State) {
				s.ClusterOperators = append(s.ClusterOperators, *s.ClusterOperators[0].DeepCopy())
				s.ClusterOperators[1].Name = "dns"
			},
			[]string{"ClusterOperator dns"},
		},
		"update there and done": {
			func(s *State) {
				s.ClusterVersions[0].Status.Desired.Version, s.ClusterOperators[0].Status.Versions[1].Version = "4.20.2", "4.20.2"
			},
			[]string{"ClusterOperator console", "ClusterVersion version"},
		},
		"pool rendered":   {func(s *State) { s.Pools[0].Spec.Configuration.Name = "rendered-2" }, []string{"MachineConfigPool master"}},
		"pool updated":    {func(s *State) { s.Pools[0].Status.Conditions[0].LastTransitionTime = later }, []string{"MachineConfigPool master"}},
		"node restarted":  {func(s *State) { s.Nodes[0].Status.NodeInfo.BootID = "b" }, []string{"Node sno"}},
		"node lost":       {func(s *State) { s.Nodes[0].Status.Conditions[0].LastTransitionTime = later }, []string{"Node sno"}},
		"node made again": {func(s *State) { s.Nodes[0].UID = "2" }, []string{"Node sno"}},
		"request and more": {func(s *State) {
			s.Requests = append(s.Requests, *s.Requests[0].DeepCopy())
			s.Requests[1].Name = "csr-2"
		}, []string{"CertificateSigningRequest csr-2"}},
		"Deployment": {
			func(s *State) {
				s.Deployments[0].Generation, s.Deployments[0].Status.ObservedGeneration = 3, 3
			},
			[]string{"Deployment openshift-console/console"},
		},
		"DaemonSet": {
			func(s *State) {
				s.DaemonSets[0].Generation, s.DaemonSets[0].Status.ObservedGeneration = 3, 3
			},
			[]string{"DaemonSet openshift-dns/dns-default"},
		},
		"StatefulSet": {
			func(s *State) {
				s.StatefulSets[0].Status.CurrentRevision, s.StatefulSets[0].Status.UpdateRevision = "c", "c"
			},
			[]string{"StatefulSet openshift-monitoring/prometheus-k8s"},
		},
		"Deployment deleted": {func(s *State) { s.Deployments = nil }, []string{"Deployment openshift-console/console"}},
		"API server restarted": {
			func(s *State) {
				s.APIServers[0].Status.ContainerStatuses[1].RestartCount++
			},
			[]string{"Pod openshift-kube-apiserver/kube-apiserver-sno"},
		},
		"API server replaced": {
			func(s *State) {
				s.APIServers[0].UID = "2"
			},
			[]string{"Pod openshift-kube-apiserver/kube-apiserver-sno"},
		},
		"kind no longer served": {
			func(s *State) { s.Pools, s.NotServed = nil, []string{"MachineConfigPool"} },
			[]string{"MachineConfigPool master", "kind MachineConfigPool"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var quiet Quiet
			before := Look(atRest())
			quiet.Observe(&before, installed)
			s := atRest()
			test.change(&s)
			report := Look(s)
			verdict := quiet.Observe(&report, installed.Add(time.Minute))
			if diff := cmp.Diff(test.want, verdict.Changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			want := time.Minute
			if len(test.want) > 0 {
				want = 0
			}
			if !verdict.AtRest || verdict.Quiet != want {
				t.Errorf("at rest %t, quiet for %s; want true, %s", verdict.AtRest, verdict.Quiet, want)
			}
		})
	}
}

// TestQuiet goes through the end of an installation, a look a minute.
func TestQuiet(t *testing.T) {
	progressing := func(s *State) { s.ClusterOperators[0].Status.Conditions[1].Status = configv1.ConditionTrue }
	steps := []struct {
		change func(*State)
		quiet  time.Duration
		atRest bool
	}{
		{progressing, 0, false},
		{func(*State) {}, 0, true},
		{func(*State) {}, time.Minute, true},
		{func(s *State) { s.Unknown = []Unknown{{Kind: kindNode, Error: "connection refused"}}; s.Nodes = nil }, 0, false},
		{func(*State) {}, 0, true},
		{func(*State) {}, time.Minute, true},
		{func(s *State) { s.Nodes[0].Status.NodeInfo.BootID = "b" }, 0, true},
		{func(s *State) { s.Nodes[0].Status.NodeInfo.BootID = "b" }, time.Minute, true},
		{func(s *State) { s.Nodes[0].Status.NodeInfo.BootID = "b" }, 2 * time.Minute, true},
	}
	var quiet Quiet
	for i, step := range steps {
		s := atRest()
		step.change(&s)
		report := Look(s)
		verdict := quiet.Observe(&report, installed.Add(time.Duration(i)*time.Minute))
		if verdict.Quiet != step.quiet || verdict.AtRest != step.atRest {
			t.Errorf("look %d: quiet for %s, at rest %t; want %s, %t", i, verdict.Quiet, verdict.AtRest, step.quiet, step.atRest)
		}
	}
}

// TestUnknownHidesNoChange has a kind that cannot be read for a while. What changed meanwhile is seen, and nothing else.
func TestUnknownHidesNoChange(t *testing.T) {
	for bootID, want := range map[string][]string{"a": nil, "b": {"Node sno"}} {
		var quiet Quiet
		before, unknown, after := atRest(), atRest(), atRest()
		unknown.Nodes, unknown.Unknown = nil, []Unknown{{Kind: kindNode, Error: "connection refused"}}
		after.Nodes[0].Status.NodeInfo.BootID = bootID
		var verdict Verdict
		for i, s := range []State{before, unknown, after} {
			report := Look(s)
			verdict = quiet.Observe(&report, installed.Add(time.Duration(i)*time.Minute))
		}
		if diff := cmp.Diff(want, verdict.Changed); diff != "" {
			t.Errorf("boot %s: changed (-want +got):\n%s", bootID, diff)
		}
	}
}

func TestSinceItWasFirstSeen(t *testing.T) {
	var quiet Quiet
	cordoned := func(s *State) { s.Nodes[0].Spec.Unschedulable = true }
	pending := func(s *State) { s.Requests[0].Status = certificatesv1.CertificateSigningRequestStatus{} }
	var got []time.Duration
	for i, changes := range [][]func(*State){{cordoned}, {cordoned, pending}, {}, {cordoned}} {
		s := atRest()
		for _, change := range changes {
			change(&s)
		}
		report := Look(s)
		quiet.Observe(&report, installed.Add(time.Duration(i)*time.Minute))
		for _, m := range report.Moving {
			got = append(got, m.Since.Sub(installed))
		}
	}
	// The request tells itself since when it waits, the node does not; and it was schedulable in between.
	if diff := cmp.Diff([]time.Duration{0, 0, 0, 3 * time.Minute}, got); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
}
