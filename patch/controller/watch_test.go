// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/patch/status"
)

func TestReporter(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options             Options
		conditions, onEvent bool
	}{
		"operator": {Options{StatusTarget: StatusOperator}, true, true},
		"none":     {Options{StatusTarget: StatusNone}, false, true},
		"dry run":  {Options{StatusTarget: StatusOperator, DryRun: true}, false, false},
	} {
		got := Environment{Options: test.options}.Reporter(mgr, "sample", "Sample", "configmap/one")
		if _, writes := got.Sink.(*status.OperatorConditions); writes != test.conditions {
			t.Errorf("%s: writes conditions: %v, want %v", name, writes, test.conditions)
		}
		if (got.Events != nil) != test.onEvent {
			t.Errorf("%s: sends events: %v, want %v", name, got.Events != nil, test.onEvent)
		}
	}
}

func TestMinRequeueAfter(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {1, 2, 1}, {2, 1, 1}} {
		if got := MinRequeueAfter(test[0], test[1]); got != test[2] {
			t.Errorf("MinRequeueAfter(%d, %d) is %d, want %d", test[0], test[1], got, test[2])
		}
	}
}

// Updates of labels and of annotations with the prefix pass, heartbeats of nodes do not.
func TestChanged(t *testing.T) {
	meta := func(labels, annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
	}
	matching, other := map[string]string{"sno/a": "1"}, map[string]string{"other/a": "1"}
	both := map[string]string{"sno/a": "1", "other/a": "1"}
	for name, test := range map[string]struct {
		annotations string
		before, now *metav1.PartialObjectMetadata
		want        bool
	}{
		"nothing":                  {"sno/", meta(nil, matching), meta(nil, matching), false},
		"a label":                  {"sno/", meta(nil, nil), meta(matching, nil), true},
		"a label is removed":       {"", meta(matching, nil), meta(nil, nil), true},
		"an annotation is added":   {"sno/", meta(nil, other), meta(nil, both), true},
		"an annotation is removed": {"sno/", meta(nil, both), meta(nil, other), true},
		"an annotation changes":    {"sno/", meta(nil, matching), meta(nil, map[string]string{"sno/a": "2"}), true},
		"another annotation":       {"sno/", meta(nil, matching), meta(nil, both), false},
		"no prefix":                {"", meta(nil, nil), meta(nil, both), false},
	} {
		o := Object{MetadataOnly: true, Annotations: test.annotations}
		got := o.changed().Update(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: test.before, ObjectNew: test.now})
		if got != test.want {
			t.Errorf("%s: passes: %v, want %v", name, got, test.want)
		}
	}
	o := Object{MetadataOnly: true}
	if !o.changed().Create(event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: meta(nil, nil)}) ||
		!o.changed().Delete(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]{Object: meta(nil, nil)}) {
		t.Error("creation and deletion must pass")
	}
}
