package manager

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Of what is MetadataOnly, labels count, and those annotations that were asked for. A heartbeat of two thousand nodes does not.
func TestChanged(t *testing.T) {
	meta := func(labels, annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
	}
	ours, theirs := map[string]string{"ours/a": "1"}, map[string]string{"theirs/a": "1"}
	both := map[string]string{"ours/a": "1", "theirs/a": "1"}
	for name, test := range map[string]struct {
		annotations string
		before, now *metav1.PartialObjectMetadata
		want        bool
	}{
		"nothing":                     {"ours/", meta(nil, ours), meta(nil, ours), false},
		"a label":                     {"ours/", meta(nil, nil), meta(ours, nil), true},
		"a label goes":                {"", meta(ours, nil), meta(nil, nil), true},
		"an annotation comes":         {"ours/", meta(nil, theirs), meta(nil, both), true},
		"an annotation goes":          {"ours/", meta(nil, both), meta(nil, theirs), true},
		"an annotation changes":       {"ours/", meta(nil, ours), meta(nil, map[string]string{"ours/a": "2"}), true},
		"another annotation":          {"ours/", meta(nil, ours), meta(nil, both), false},
		"no annotation was asked for": {"", meta(nil, nil), meta(nil, both), false},
	} {
		o := Object{MetadataOnly: true, Annotations: test.annotations}
		got := o.changed().Update(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: test.before, ObjectNew: test.now})
		if got != test.want {
			t.Errorf("%s: told: %v, want %v", name, got, test.want)
		}
	}
	o := Object{MetadataOnly: true}
	if !o.changed().Create(event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: meta(nil, nil)}) ||
		!o.changed().Delete(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]{Object: meta(nil, nil)}) {
		t.Error("what comes and what goes is told")
	}
}

func TestWake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	values, did, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		wake(ctx, values, func() { did <- struct{}{} })
		close(ended)
	}()
	for range 3 {
		values <- struct{}{}
		select {
		case <-did:
		case <-time.After(10 * time.Second):
			t.Fatal("it was not heard")
		}
	}
	cancel()
	<-ended
}
