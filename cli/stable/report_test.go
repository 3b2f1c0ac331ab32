package stable

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
)

var (
	installed = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	later     = metav1.NewTime(installed.Add(time.Hour))
)

func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "1", Generation: 2, CreationTimestamp: metav1.NewTime(installed),
	}
}

func operatorConditions(available, progressing, degraded configv1.ConditionStatus) []configv1.ClusterOperatorStatusCondition {
	at := metav1.NewTime(installed)
	return []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: available, Reason: "AsExpected", LastTransitionTime: at},
		{Type: configv1.OperatorProgressing, Status: progressing, Reason: "AsExpected", LastTransitionTime: at},
		{Type: configv1.OperatorDegraded, Status: degraded, Reason: "AsExpected", LastTransitionTime: at},
	}
}

// atRest is a single-node cluster in which nothing moves, with one object of each kind.
func atRest() State {
	at := metav1.NewTime(installed)
	request := certificatesv1.CertificateSigningRequest{ObjectMeta: object("", "csr-1")}
	request.Spec.SignerName = certificatesv1.KubeletServingSignerName
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	request.Status.Certificate = []byte("signed")
	return State{
		ClusterVersions: []configv1.ClusterVersion{{ObjectMeta: object("", "version"), Status: configv1.ClusterVersionStatus{
			ObservedGeneration: 2, Desired: configv1.Release{Version: "4.20.1"},
			History:    []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.1"}},
			Conditions: operatorConditions(configv1.ConditionTrue, configv1.ConditionFalse, configv1.ConditionFalse)[:2],
		}}},
		ClusterOperators: []configv1.ClusterOperator{{ObjectMeta: object("", "console"), Status: configv1.ClusterOperatorStatus{
			Conditions: operatorConditions(configv1.ConditionTrue, configv1.ConditionFalse, configv1.ConditionFalse),
			Versions:   []configv1.OperandVersion{{Name: "console", Version: "1.2"}, {Name: "operator", Version: "4.20.1"}},
		}}},
		Pools: []machineconfigurationv1.MachineConfigPool{{ObjectMeta: object("", "master"), Status: machineconfigurationv1.MachineConfigPoolStatus{
			ObservedGeneration: 2, MachineCount: 1, UpdatedMachineCount: 1,
			Conditions: []machineconfigurationv1.MachineConfigPoolCondition{
				{Type: machineconfigurationv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue, LastTransitionTime: at},
				{Type: machineconfigurationv1.MachineConfigPoolUpdating, Status: corev1.ConditionFalse, LastTransitionTime: at},
				{Type: machineconfigurationv1.MachineConfigPoolDegraded, Status: corev1.ConditionFalse, LastTransitionTime: at},
			},
		}}},
		Nodes: []corev1.Node{{ObjectMeta: object("", "sno"), Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: "a"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at}},
		}}},
		Requests: []certificatesv1.CertificateSigningRequest{request},
		Deployments: []appsv1.Deployment{{
			ObjectMeta: object("openshift-console", "console"),
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		}},
		DaemonSets: []appsv1.DaemonSet{{
			ObjectMeta: object("openshift-dns", "dns-default"),
			Status:     appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberAvailable: 1},
		}},
		StatefulSets: []appsv1.StatefulSet{{
			ObjectMeta: object("openshift-monitoring", "prometheus-k8s"),
			Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.StatefulSetStatus{
				ObservedGeneration: 2, CurrentRevision: "b", UpdateRevision: "b", AvailableReplicas: 2,
			},
		}},
		APIServers: []corev1.Pod{{ObjectMeta: object("openshift-kube-apiserver", "kube-apiserver-sno"), Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}, {RestartCount: 2}},
		}}},
	}
}

func TestLook(t *testing.T) {
	node := func(s *State) *corev1.Node { return &s.Nodes[0] }
	annotate := func(s *State, pairs ...string) {
		node(s).Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			node(s).Annotations[pairs[i]] = pairs[i+1]
		}
	}
	const unapproved = "nobody has approved it; on a single node that is left to a person or an outside tool"
	tests := map[string]struct {
		change func(*State)
		moving []string
		notes  []string
	}{
		"at rest": {change: func(*State) {}},

		"no ClusterVersion yet":   {func(s *State) { s.ClusterVersions = nil }, []string{"ClusterVersion: there is none yet"}, nil},
		"ClusterVersion unserved": {change: func(s *State) { s.ClusterVersions, s.NotServed = nil, []string{"ClusterVersion"} }},
		"ClusterVersion unknown": {change: func(s *State) {
			s.ClusterVersions, s.Unknown = nil, []Unknown{{Kind: "ClusterVersion", Error: "connection refused"}}
		}},
		"ClusterVersion not seen": {
			func(s *State) { s.ClusterVersions[0].Generation = 3 },
			[]string{"ClusterVersion version: the cluster-version-operator has not seen its latest change"}, nil,
		},
		"ClusterVersion progressing": {
			func(s *State) {
				s.ClusterVersions[0].Status.Conditions[1].Status = configv1.ConditionTrue
				s.ClusterVersions[0].Status.History[0].State = configv1.PartialUpdate
			},
			[]string{"ClusterVersion version: Progressing=True (AsExpected)", "ClusterVersion version: version 4.20.1 is not wholly there"}, nil,
		},
		"ClusterVersion failing": {
			func(s *State) {
				s.ClusterVersions[0].Status.Conditions = append(s.ClusterVersions[0].Status.Conditions,
					configv1.ClusterOperatorStatusCondition{Type: "Failing", Status: configv1.ConditionTrue})
			},
			[]string{"ClusterVersion version: Failing=True"}, nil,
		},

		"no operators yet": {func(s *State) { s.ClusterOperators = nil }, []string{"ClusterOperator: there is none yet"}, nil},
		"operator unavailable, progressing and degraded": {
			func(s *State) {
				s.ClusterOperators[0].Status.Conditions = operatorConditions(configv1.ConditionFalse, configv1.ConditionTrue, configv1.ConditionTrue)
				s.ClusterOperators[0].Status.Conditions[2].Message = "A: one\nB: two"
			},
			[]string{
				"ClusterOperator console: Available=False (AsExpected)", "ClusterOperator console: Progressing=True (AsExpected)",
				"ClusterOperator console: Degraded=True (AsExpected): A: one ...",
			}, nil,
		},
		"operator unknown": {
			func(s *State) { s.ClusterOperators[0].Status.Conditions[0].Status = configv1.ConditionUnknown },
			[]string{"ClusterOperator console: Available=Unknown (AsExpected)"}, nil,
		},
		"operator without a condition": {
			func(s *State) { s.ClusterOperators[0].Status.Conditions = s.ClusterOperators[0].Status.Conditions[:2] },
			[]string{"ClusterOperator console: Degraded is not known yet"}, nil,
		},
		"operator at another version": {
			func(s *State) { s.ClusterOperators[0].Status.Versions[1].Version = "4.20.0" },
			[]string{"ClusterOperator console: it is at version 4.20.0, the cluster is to have 4.20.1"}, nil,
		},
		"operator without a version": {
			func(s *State) { s.ClusterOperators[0].Status.Versions = s.ClusterOperators[0].Status.Versions[:1] },
			[]string{"ClusterOperator console: it has reported no version yet"}, nil,
		},

		"no pools": {change: func(s *State) { s.Pools = nil }},
		"pool updating": {
			func(s *State) {
				s.Pools[0].Status.Conditions[0].Status, s.Pools[0].Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionTrue
				s.Pools[0].Status.UpdatedMachineCount = 0
			},
			[]string{"MachineConfigPool master: 0 of 1 nodes are updated"}, nil,
		},
		"pool degraded": {
			func(s *State) {
				s.Pools[0].Status.Conditions[2].Status, s.Pools[0].Status.Conditions[2].Message = corev1.ConditionTrue, "Node sno is stuck"
			},
			[]string{"MachineConfigPool master: Degraded=True: Node sno is stuck"}, nil,
		},
		"pool not seen": {
			func(s *State) { s.Pools[0].Generation = 3 },
			[]string{"MachineConfigPool master: the machine-config-operator has not seen its latest change"}, nil,
		},
		"pool not updated": {
			func(s *State) { s.Pools[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			[]string{"MachineConfigPool master: Updated=False"}, nil,
		},
		"pool paused before an update": {
			func(s *State) {
				s.Pools[0].Spec.Paused = true
				s.Pools[0].Status.Conditions[0].Status = corev1.ConditionFalse
			}, nil,
			[]string{"MachineConfigPool master: it is paused, and an update of its nodes waits"},
		},
		"pool paused in an update": {
			func(s *State) {
				s.Pools[0].Spec.Paused = true
				s.Pools[0].Status.Conditions[0].Status, s.Pools[0].Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionTrue
			},
			[]string{"MachineConfigPool master: 1 of 1 nodes are updated"}, nil,
		},
		"pool without conditions": {
			func(s *State) { s.Pools[0].Status.Conditions = nil },
			[]string{"MachineConfigPool master: Updated=Unknown"}, nil,
		},

		"no nodes yet": {func(s *State) { s.Nodes = nil }, []string{"Node: there is none yet"}, nil},
		"node not ready": {
			func(s *State) {
				node(s).Status.Conditions[0].Status, node(s).Status.Conditions[0].Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
			},
			[]string{"Node sno: Ready=Unknown (NodeStatusUnknown)"}, nil,
		},
		"node new":      {func(s *State) { node(s).Status.Conditions = nil }, []string{"Node sno: Ready=Unknown"}, nil},
		"node cordoned": {func(s *State) { node(s).Spec.Unschedulable = true }, []string{"Node sno: it is cordoned and takes no pods"}, nil},
		"node drained": {
			func(s *State) {
				annotate(s, machineconfig.DesiredDrainAnnotation, "drain-rendered-2", machineconfig.LastAppliedDrainAnnotation, "uncordon-rendered-1")
			},
			[]string{"Node sno: it is being drained"}, nil,
		},
		"node waits for uncordon": {
			func(s *State) { annotate(s, machineconfig.DesiredDrainAnnotation, "uncordon-rendered-2") },
			[]string{"Node sno: it waits to take pods again"}, nil,
		},
		"node asks nonsense": {
			func(s *State) { annotate(s, machineconfig.DesiredDrainAnnotation, "explode-rendered-2") },
			[]string{"Node sno: it asks the machine-config-operator for something that is not understood"}, nil,
		},
		"node takes a config": {
			func(s *State) {
				annotate(s, machineconfig.CurrentConfigAnnotation, "rendered-1", machineconfig.DesiredConfigAnnotation, "rendered-2")
			},
			[]string{"Node sno: it takes another machine config, and restarts for it where that is needed"}, nil,
		},

		"request pending": {
			func(s *State) { s.Requests[0].Status = certificatesv1.CertificateSigningRequestStatus{} },
			[]string{"CertificateSigningRequest csr-1: " + unapproved}, nil,
		},
		"request approved": {
			func(s *State) { s.Requests[0].Status.Certificate = nil },
			[]string{"CertificateSigningRequest csr-1: it is approved and not signed yet"}, nil,
		},
		"request denied": {change: func(s *State) {
			s.Requests[0].Status.Certificate = nil
			s.Requests[0].Status.Conditions[0].Type = certificatesv1.CertificateDenied
		}},
		"request of somebody else": {change: func(s *State) {
			s.Requests[0].Spec.SignerName = "example.com/clients"
			s.Requests[0].Status = certificatesv1.CertificateSigningRequestStatus{}
		}},

		"Deployment not seen": {
			func(s *State) { s.Deployments[0].Generation = 3 },
			[]string{"Deployment openshift-console/console: its latest change has not been seen yet"}, nil,
		},
		"Deployment not updated": {
			func(s *State) { s.Deployments[0].Status.UpdatedReplicas = 0 },
			[]string{"Deployment openshift-console/console: 0 of 1 pods are updated"}, nil,
		},
		"Deployment with old pods": {
			func(s *State) { s.Deployments[0].Status.Replicas = 2 },
			[]string{"Deployment openshift-console/console: 1 old pods are still there"}, nil,
		},
		"Deployment unavailable": {
			func(s *State) { s.Deployments[0].Status.AvailableReplicas = 0 },
			[]string{"Deployment openshift-console/console: 0 of 1 pods are available"}, nil,
		},
		"Deployment of a user": {change: func(s *State) {
			s.Deployments[0].Namespace = "shop"
			s.Deployments[0].Status.AvailableReplicas = 0
		}},
		"DaemonSet not updated": {
			func(s *State) { s.DaemonSets[0].Status.UpdatedNumberScheduled = 0 },
			[]string{"DaemonSet openshift-dns/dns-default: 0 of 1 pods are updated"}, nil,
		},
		"DaemonSet updated by hand": {change: func(s *State) {
			s.DaemonSets[0].Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			s.DaemonSets[0].Status.UpdatedNumberScheduled = 0
		}},
		"DaemonSet unavailable": {
			func(s *State) { s.DaemonSets[0].Status.NumberAvailable = 0 },
			[]string{"DaemonSet openshift-dns/dns-default: 0 of 1 pods are available"}, nil,
		},
		"StatefulSet not updated": {
			func(s *State) {
				s.StatefulSets[0].Status.CurrentRevision, s.StatefulSets[0].Status.UpdatedReplicas = "a", 1
			},
			[]string{"StatefulSet openshift-monitoring/prometheus-k8s: 1 of 2 pods are updated"}, nil,
		},
		"StatefulSet up to its partition": {change: func(s *State) {
			s.StatefulSets[0].Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}
			s.StatefulSets[0].Status.CurrentRevision, s.StatefulSets[0].Status.UpdatedReplicas = "a", 1
		}},
		"StatefulSet updated by hand": {change: func(s *State) {
			s.StatefulSets[0].Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			s.StatefulSets[0].Status.CurrentRevision = "a"
		}},
		"StatefulSet unavailable": {
			func(s *State) { s.StatefulSets[0].Status.AvailableReplicas = 1 },
			[]string{"StatefulSet openshift-monitoring/prometheus-k8s: 1 of 2 pods are available"}, nil,
		},

		"API server not ready": {
			func(s *State) { s.APIServers[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			[]string{"Pod openshift-kube-apiserver/kube-apiserver-sno: Ready=False"}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := atRest()
			test.change(&s)
			report := Look(s)
			var moving []string
			for _, m := range report.Moving {
				moving = append(moving, m.String())
			}
			if diff := cmp.Diff(test.moving, moving); diff != "" {
				t.Errorf("moving (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, report.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if want := len(moving) == 0 && len(s.Unknown) == 0; report.AtRest() != want {
				t.Errorf("AtRest() = %t, want %t", report.AtRest(), want)
			}
		})
	}
}

func TestLookSaysSinceWhen(t *testing.T) {
	s := atRest()
	s.ClusterOperators[0].Status.Conditions[1].Status = configv1.ConditionTrue
	s.ClusterOperators[0].Status.Conditions[1].LastTransitionTime = later
	s.Requests[0].Status = certificatesv1.CertificateSigningRequestStatus{}
	report := Look(s)
	if len(report.Moving) != 2 || report.Moving[0].Since != later || !report.Moving[1].Since.Time.Equal(installed) {
		t.Errorf("got %v, want the transition's and the request's own time", report.Moving)
	}
}

func TestFirstLine(t *testing.T) {
	for message, want := range map[string]string{
		"short": "short", " two\nlines": "two ...", strings.Repeat("ä", 161): strings.Repeat("ä", 160) + " ...", "": "",
	} {
		if got := firstLine(message); got != want {
			t.Errorf("firstLine(%q) = %q, want %q", message, got, want)
		}
	}
}
