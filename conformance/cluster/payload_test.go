// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"testing"

	"github.com/solonode/sno/conformance/catalogue"
)

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
