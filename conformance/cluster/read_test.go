// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/conformance/catalogue"
)

// TestGracePeriodIn reads the kubelet configuration in all encodings of Ignition.
func TestGracePeriodIn(t *testing.T) {
	const text = "kind: KubeletConfiguration\nshutdownGracePeriod: 1m30s\n"
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	for name, test := range map[string]struct {
		path, source, compression string
		want                      string
		wrong                     bool
	}{
		"plain":              {catalogue.KubeletFile, "data:,kind:%20KubeletConfiguration%0AshutdownGracePeriod:%201m30s", "", "1m30s", false},
		"base64":             {catalogue.KubeletFile, "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(text)), "", "1m30s", false},
		"packed":             {catalogue.KubeletFile, "data:;base64," + base64.StdEncoding.EncodeToString(packed.Bytes()), "gzip", "1m30s", false},
		"JSON":               {catalogue.KubeletFile, `data:,{"shutdownGracePeriod":"5s"}`, "", "5s", false},
		"not set":            {catalogue.KubeletFile, "data:,kind:%20KubeletConfiguration", "", "", false},
		"another file":       {"/etc/kubernetes/other.conf", "data:,shutdownGracePeriod:%201m30s", "", "", false},
		"another URL":        {catalogue.KubeletFile, "https://example.com/kubelet.conf", "", "", true},
		"no base64":          {catalogue.KubeletFile, "data:;base64,!", "", "", true},
		"not packed":         {catalogue.KubeletFile, "data:,x", "gzip", "", true},
		"no configuration":   {catalogue.KubeletFile, "data:,[1", "", "", true},
		"a number, not text": {catalogue.KubeletFile, "data:,shutdownGracePeriod:%20[]", "", "", true},
	} {
		rendered := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{
			map[string]any{"path": test.path, "contents": map[string]any{"source": test.source, "compression": test.compression}},
		}}}}}}
		if got, err := gracePeriodIn(rendered); got != test.want || (err != nil) != test.wrong {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := gracePeriodIn(&unstructured.Unstructured{Object: map[string]any{}}); got != "" || err != nil {
		t.Errorf("nothing: %q, %v", got, err)
	}
}

func TestPayload(t *testing.T) {
	all := PayloadNamespaces()
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("not sorted, or duplicates: %v", all)
	}
	for _, check := range catalogue.All() {
		for _, name := range check.Copies {
			if !slices.Contains(all, name.Namespace) {
				t.Errorf("%s, which %s needs, is missing", name.Namespace, check.ID)
			}
		}
	}
	for _, namespace := range []string{"openshift-etcd", "openshift-cluster-machine-approver"} {
		if !slices.Contains(all, namespace) {
			t.Errorf("%s, which checks need, is missing", namespace)
		}
	}
	p, chosen := newPayload(nil), newPayload([]string{"openshift-storage"})
	for namespace, want := range map[string]bool{
		"openshift-ingress": true, "openshift-must-gather-x7k2p": false, "openshift": false, "kube-system": false, "sno-conformance-abc": false,
		"openshift-storage": false, "openshift-gitops": false, "openshift-cnv": false, "openshift-operators": false, "openshift-logging": false,
	} {
		if got := p.has(namespace); got != want {
			t.Errorf("%s: %t, want %t", namespace, got, want)
		}
		if got := chosen.has(namespace); got != (namespace == "openshift-storage") {
			t.Errorf("%s with openshift-storage selected: %t", namespace, got)
		}
	}
	if got := slices.Sorted(maps.Keys(p.others)); !slices.Equal(got, []string{"openshift-cnv", "openshift-gitops", "openshift-logging", "openshift-operators", "openshift-storage"}) {
		t.Errorf("left out: %v", got)
	}
}

// TestTimes: all fields of the predefined times are positive, and all are required.
func TestTimes(t *testing.T) {
	for name, times := range map[string]Times{"RealTimes": RealTimes(), "SimulatedTimes": SimulatedTimes()} {
		if err := times.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range reflect.TypeFor[Times]().NumField() {
		for _, wrong := range []int64{0, -1} {
			times, field := RealTimes(), reflect.TypeFor[Times]().Field(i).Name
			reflect.ValueOf(&times).Elem().Field(i).SetInt(wrong)
			if err := times.Validate(); !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), ": "+field+";") {
				t.Errorf("%s %d: %v", field, wrong, err)
			}
		}
	}
}
