// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/solonode/sno/testcluster/scenario"
)

func watcher() *Watcher {
	return &Watcher{
		operands: []scenario.Operand{
			{Namespace: "here", Name: "writer", Replicas: 2, MinAvailable: 1, OneWriter: true},
			{Namespace: "here", Name: "reader", Replicas: 1, MinAvailable: 1},
		},
		nodes: map[types.UID]string{},
	}
}

func pod(uid, namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: node},
	}
}

func TestTwoWriters(t *testing.T) {
	const hash = "-5cc45f5d9-"
	first := pod("1", "here", "writer"+hash+"one", "a")
	for _, test := range []struct {
		name   string
		events func(*Watcher)
		broken bool
	}{
		{"one node each", func(w *Watcher) { w.pod(first); w.pod(pod("2", "here", "writer"+hash+"two", "b")) }, false},
		{"one node for both", func(w *Watcher) { w.pod(first); w.pod(pod("2", "here", "writer"+hash+"two", "a")) }, true},
		{"one after the other", func(w *Watcher) {
			w.pod(first)
			w.podGone(toolscache.DeletedFinalStateUnknown{Obj: first})
			w.pod(pod("2", "here", "writer"+hash+"two", "a"))
		}, false},
		{"the second one waits", func(w *Watcher) { w.pod(first); w.pod(pod("2", "here", "writer"+hash+"two", "")) }, false},
		{"the second one waited", func(w *Watcher) {
			w.pod(first)
			w.pod(pod("2", "here", "writer"+hash+"two", ""))
			w.pod(pod("2", "here", "writer"+hash+"two", "a"))
		}, true},
		{"the same one again", func(w *Watcher) { w.pod(first); w.pod(first) }, false},
		{"readers", func(w *Watcher) {
			w.pod(pod("1", "here", "reader"+hash+"one", "a"))
			w.pod(pod("2", "here", "reader"+hash+"two", "a"))
		}, false},
		{"another namespace's", func(w *Watcher) { w.pod(first); w.pod(pod("2", "there", "writer"+hash+"two", "a")) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := watcher()
			test.events(w)
			if err := w.TwoWriters(); (err != nil) != test.broken || (err != nil && !errors.Is(err, ErrTwoWriters)) {
				t.Errorf("got %v, want two writers: %v", err, test.broken)
			}
		})
	}
}

func TestAvailable(t *testing.T) {
	for _, test := range []struct {
		name       string
		generation int64
		available  int32
		outage     bool
	}{
		{"all", 4, 2, false},
		{"enough", 4, 1, false},
		{"none", 4, 0, true},
		{"none, before the mark", 3, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := watcher()
			w.marked, w.fewest = map[string]int64{"writer": 3, "reader": 3}, map[string]int32{"writer": 2, "reader": 1}
			for _, available := range []int32{2, test.available, 2} {
				w.deployment(&appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "writer", Generation: test.generation},
					Status:     appsv1.DeploymentStatus{AvailableReplicas: available},
				})
			}
			if err := w.Available(); (err != nil) != test.outage || (err != nil && !errors.Is(err, ErrOutage)) {
				t.Errorf("got %v, want an outage: %v", err, test.outage)
			}
		})
	}
}
