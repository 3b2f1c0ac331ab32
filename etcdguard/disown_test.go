package etcdguard_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/ownership"
)

func TestDisowned(t *testing.T) {
	theirs := func(fields string) metav1.ManagedFieldsEntry { return entry(cvo, fields) }
	status := entry(us, `{"f:status":{}}`)
	status.Subresource = "status"
	for name, test := range map[string]struct{ entries, want []metav1.ManagedFieldsEntry }{
		"nothing":      {nil, nil},
		"none of ours": {[]metav1.ManagedFieldsEntry{entry(person, replicasJSON)}, []metav1.ManagedFieldsEntry{entry(person, replicasJSON)}},
		"only ours":    {[]metav1.ManagedFieldsEntry{entry(us, replicasJSON)}, []metav1.ManagedFieldsEntry{theirs(replicasJSON)}},
		"beside a person": {[]metav1.ManagedFieldsEntry{entry(us, replicasJSON), entry(person, replicasJSON)},
			[]metav1.ManagedFieldsEntry{entry(person, replicasJSON), theirs(replicasJSON)}},
		"both": {[]metav1.ManagedFieldsEntry{entry(us, `{"f:spec":{"f:a":{},"f:b":{}}}`), theirs(`{"f:spec":{"f:b":{},"f:c":{}}}`)},
			[]metav1.ManagedFieldsEntry{theirs(`{"f:spec":{"f:a":{},"f:b":{},"f:c":{}}}`)}},
		"another subresource": {[]metav1.ManagedFieldsEntry{status, entry(us, replicasJSON)}, []metav1.ManagedFieldsEntry{status, theirs(replicasJSON)}},
	} {
		t.Run(name, func(t *testing.T) {
			before := text(t, test.entries)
			got, err := etcdguard.Disowned(test.entries, cvo)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(t, test.want), text(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text(t, test.entries) != before {
				t.Error("the argument was changed")
			}
		})
	}
	_, err := etcdguard.Disowned([]metav1.ManagedFieldsEntry{entry(us, `{"f:spec":1}`)}, cvo)
	if !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("damaged: %v", err)
	}
}
