// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

const oldVersion, newVersion = "4.21.7", "4.22.0"

// world is a cluster with one operand on one node. All else does not exist.
type world struct {
	client.Client
	node    corev1.Node
	pod     corev1.Pod
	console appsv1.Deployment
	version configv1.ClusterVersion
}

func newWorld() *world {
	meta := metav1.ObjectMeta{Namespace: "openshift-console", Name: "console", Labels: map[string]string{"app": "console"}}
	return &world{
		node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-0"}, Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: "first"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}},
		pod: corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "edge-0"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			ContainerID: "cri-o://first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}},
		console: appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: meta.Labels}},
			Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		},
		version: configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{
			{State: configv1.CompletedUpdate, StartedTime: metav1.NewTime(time.Unix(1000, 0)), Version: oldVersion},
		}}},
	}
}

// Get implements client.Client.
func (w *world) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if version, ok := into.(*configv1.ClusterVersion); ok {
		w.version.DeepCopyInto(version)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Client.
func (w *world) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *corev1.NodeList:
		list.Items = []corev1.Node{*w.node.DeepCopy()}
	case *corev1.PodList:
		list.Items = []corev1.Pod{*w.pod.DeepCopy()}
	case *appsv1.DeploymentList:
		list.Items = []appsv1.Deployment{*w.console.DeepCopy()}
	}
	return nil
}

// disturber returns one with this target, and a function that ends its watches.
func (w *world) disturber(t *testing.T, target cluster.Target) (d *Disturber, end func()) {
	t.Helper()
	watching, set := watch.NewFake(), fake.NewClientset()
	set.PrependWatchReactor("deployments", clienttesting.DefaultWatchReactor(watching, nil))
	before, err := cluster.Read(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	target.Times = cluster.RealTimes()
	return &Disturber{Target: target, Client: w, Set: set, Before: before}, watching.Stop
}

// A reboot counts if the boot ID is another one, the node is Ready and its containers are new, whatever the act returns.
func TestReboot(t *testing.T) {
	boots := func(ready corev1.ConditionStatus, container string) func(*world) error {
		return func(w *world) error {
			w.node.Status.NodeInfo.BootID, w.node.Status.Conditions[0].Status = "second", ready
			w.pod.Status.ContainerStatuses[0].ContainerID = container
			return nil
		}
	}
	for name, test := range map[string]struct {
		act  func(*world) error
		want string
	}{
		"reboots":      {boots(corev1.ConditionTrue, "cri-o://second"), ""},
		"does nothing": {func(*world) error { return nil }, "the disruption did not happen: status.nodeInfo.bootID is the same as before"},
		"fails":        {func(*world) error { return catalogue.ErrNotPerformed }, catalogue.ErrNotPerformed.Error()},
		"the node is not Ready": {
			boots(corev1.ConditionFalse, "cri-o://second"), "the node has not recovered: it has booted and is not Ready",
		},
		"the containers are old": {
			boots(corev1.ConditionTrue, "cri-o://first"), "the node has not recovered: it has booted, but pod openshift-console/console still has a container from before",
		},
		"an operand does not recover": {func(w *world) error {
			w.console.Status.AvailableReplicas = 0
			return boots(corev1.ConditionTrue, "cri-o://second")(w)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				d, end := w.disturber(t, cluster.Target{RestartNode: func(context.Context, string) error { return test.act(w) }})
				defer end()
				records, err := d.Perform(t.Context(), catalogue.RestartNodes)
				if test.want != "" {
					notPerformed := strings.Contains(test.want, catalogue.ErrNotPerformed.Error())
					if err == nil || err.Error() != "restart node edge-0: "+test.want || errors.Is(err, catalogue.ErrNotPerformed) != notPerformed {
						t.Errorf("%v, want %q", err, test.want)
					}
					return
				}
				if err != nil || len(records.NodeRestart.Operands) != 1 || (records.NodeRestart.Operands[0].Failure == "") != (w.console.Status.AvailableReplicas == 1) {
					t.Errorf("%v, %+v", err, records.NodeRestart)
				}
			})
		})
	}
}

// A command of a person that hangs is ended at the limit of its act.
func TestHangingCommand(t *testing.T) {
	for act, limit := range map[catalogue.Act]func(cluster.Times) time.Duration{
		catalogue.RestartNodes:   func(all cluster.Times) time.Duration { return all.Restart },
		catalogue.UpgradeCluster: func(all cluster.Times) time.Duration { return all.Upgrade },
	} {
		synctest.Test(t, func(t *testing.T) {
			hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			d, end := newWorld().disturber(t, cluster.Target{RestartNode: func(ctx context.Context, _ string) error { return hangs(ctx) }, Upgrade: hangs})
			defer end()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			_, err := d.Perform(ctx, act)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took < limit(d.Target.Times) || ctx.Err() != nil {
				t.Errorf("%v: %v after %s", act, err, took)
			}
		})
	}
}

// An act that did not happen is not tried again for another check.
func TestFailedActIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		d, end := newWorld().disturber(t, cluster.Target{RestartNode: func(context.Context, string) error { attempts++; return nil }})
		defer end()
		_, first := d.Perform(t.Context(), catalogue.RestartNodes)
		if _, second := d.Perform(t.Context(), catalogue.RestartNodes); first == nil || !errors.Is(second, first) || attempts != 1 {
			t.Errorf("%d attempts, %v, %v", attempts, first, second)
		}
	})
}

// A rollout writes the annotation of kubectl, and then what was there before, also after an interruption.
func TestRolloutIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		before      map[string]string
		interrupted bool
	}{
		"no annotation": {}, "a person's": {before: map[string]string{rolloutAnnotation: "yesterday"}}, "interrupted": {interrupted: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				w := newWorld()
				live := &w.console.Spec.Template
				live.Annotations = maps.Clone(test.before)
				d, end := w.disturber(t, cluster.Target{})
				defer end()
				set, _ := d.Set.(*fake.Clientset)
				var seen []string
				set.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
					var body struct {
						Spec struct {
							Template struct {
								Metadata struct{ Annotations map[string]*string }
							}
						}
					}
					patch, _ := action.(clienttesting.PatchAction)
					if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
						t.Error(err)
					}
					live.Annotations = map[string]string{}
					if value := body.Spec.Template.Metadata.Annotations[rolloutAnnotation]; value != nil {
						live.Annotations[rolloutAnnotation] = *value
					}
					seen = append(seen, live.Annotations[rolloutAnnotation])
					if test.interrupted {
						interrupt()
					}
					return true, &w.console, nil
				})
				if _, err := d.Perform(ctx, catalogue.RollOutAll); (err != nil) != test.interrupted {
					t.Error(err)
				}
				if len(seen) != 2 || !strings.HasPrefix(seen[0], "20") || !maps.Equal(live.Annotations, test.before) {
					t.Errorf("%q were written, and %v is left, want %v", seen, live.Annotations, test.before)
				}
			})
		})
	}
}

// An upgrade counts if the history of the ClusterVersion has a newer entry.
func TestUpgrade(t *testing.T) {
	adds := func(state configv1.UpdateState, started time.Time) func(*world) error {
		return func(w *world) error {
			entry := configv1.UpdateHistory{State: state, StartedTime: metav1.NewTime(started), Version: newVersion}
			w.version.Status.History = append([]configv1.UpdateHistory{entry}, w.version.Status.History...)
			return nil
		}
	}
	const notNewer = "the disruption did not happen: status.history of ClusterVersion version has no entry newer than " + oldVersion
	for name, test := range map[string]struct {
		act   func(*world) error
		state configv1.UpdateState
		want  string
	}{
		"upgrades":       {adds(configv1.CompletedUpdate, time.Unix(2000, 0)), configv1.CompletedUpdate, ""},
		"stays partial":  {adds(configv1.PartialUpdate, time.Unix(2000, 0)), configv1.PartialUpdate, ""},
		"an older entry": {adds(configv1.CompletedUpdate, time.Unix(1, 0)), "", notNewer},
		"does nothing":   {func(*world) error { return nil }, "", notNewer},
		"fails":          {func(*world) error { return catalogue.ErrNotPerformed }, "", "upgrade: " + catalogue.ErrNotPerformed.Error()},
		"the same entry is completed": {func(w *world) error {
			w.version.Status.History[0].CompletionTime = ptr.To(metav1.Now())
			return nil
		}, "", notNewer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				d, end := w.disturber(t, cluster.Target{Upgrade: func(context.Context) error { return test.act(w) }})
				defer end()
				records, err := d.Perform(t.Context(), catalogue.UpgradeCluster)
				if test.want != "" {
					if !errors.Is(err, catalogue.ErrNotPerformed) || err.Error() != test.want {
						t.Errorf("%v, want %q", err, test.want)
					}
					return
				}
				if u := records.Upgrade; err != nil || u.From != oldVersion || u.To != newVersion || u.State != test.state || len(u.Operands) != 1 {
					t.Errorf("%v, %+v", err, u)
				}
			})
		})
	}
}

// An outage counts if no request was answered for its length.
func TestOutage(t *testing.T) {
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	const length = 3 * time.Second
	stops := func(length time.Duration) error {
		down.Store(true)
		defer down.Store(false)
		<-time.After(length)
		return nil
	}
	for name, test := range map[string]struct {
		act  func() error
		want string
	}{
		"stops it":      {func() error { return stops(length) }, ""},
		"for too short": {func() error { return stops(time.Second) }, "the disruption did not happen: the API server answered during the outage of 3s"},
		"fails":         {func() error { return catalogue.ErrNotPerformed }, "stop the API server: " + catalogue.ErrNotPerformed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var progress strings.Builder
			d, end := newWorld().disturber(t, cluster.Target{
				Config: &rest.Config{Host: server.URL}, Outage: func(context.Context, time.Duration) error { return test.act() }, Progress: &progress,
			})
			defer end()
			d.Target.Times.Outage = length
			d.NewWorkload = func(context.Context) (string, error) { return "", catalogue.ErrInconclusive }
			records, err := d.Perform(t.Context(), catalogue.StopAPIServer)
			if test.want != "" {
				if !errors.Is(err, catalogue.ErrNotPerformed) || err.Error() != test.want {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			// The time of a new workload is not known here.
			if o := records.Outage; err != nil || o.Length < (length-probeTolerance).Seconds() || o.Failure != "" || o.NewWorkload != 0 {
				t.Errorf("%v, %+v", err, o)
			}
			if !strings.Contains(progress.String(), catalogue.ErrInconclusive.Error()) {
				t.Errorf("what prevents a new workload is not reported:\n%s", &progress)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	before := &catalogue.State{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	after := before.DeepCopy()
	if left := differences(before, after); len(left) > 0 {
		t.Errorf("no change, but %v", left)
	}
	after.Nodes[0].Spec.Unschedulable = true
	after.Nodes[1].Name = "c"
	got := strings.Join(differences(before, after), "; ")
	if want := "Node a: was unschedulable false, is unschedulable true; Node b: deleted; Node c: created"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The annotation of a rollout and other template annotations are compared; for operators' own ones, whose values
	// change, only the keys.
	template := func(annotations map[string]string) *catalogue.State {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"}}
		d.Spec.Template.Annotations = annotations
		return &catalogue.State{Deployments: []appsv1.Deployment{d}}
	}
	for name, test := range map[string]struct {
		before, after map[string]string
		left          int
	}{
		"a rollout's":              {nil, map[string]string{rolloutAnnotation: "now"}, 1},
		"a later rollout's":        {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "now"}, 1},
		"reverted":                 {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "then"}, 0},
		"a person's, removed":      {map[string]string{"example.com/reviewed": "yes"}, nil, 1},
		"another one":              {nil, map[string]string{"example.com/reviewed": "yes"}, 1},
		"an operator's, changed":   {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "2"}, 0},
		"an operator's, unchanged": {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "1"}, 0},
	} {
		if left := differences(template(test.before), template(test.after)); len(left) != test.left {
			t.Errorf("annotation %s: %v, want %d", name, left, test.left)
		}
	}
}
