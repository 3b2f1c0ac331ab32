// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/fleet"
)

func TestCheckHub(t *testing.T) {
	const clusters, works = "cluster.open-cluster-management.io/v1", "work.open-cluster-management.io/v1"
	for served, want := range map[string]error{
		clusters + " " + works + " addon.open-cluster-management.io/v1alpha1": nil,
		clusters + " " + works + " addon.open-cluster-management.io/v1":       fleet.ErrNoAddOns,
		"cluster.open-cluster-management.io/v1alpha1 " + works:                fleet.ErrNoHub,
		"apps/v1": fleet.ErrNoHub,
	} {
		groups := &metav1.APIGroupList{}
		for _, version := range strings.Fields(served) {
			groups.Groups = append(groups.Groups, metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: version}}})
		}
		if err := fleet.CheckHub(groups); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", served, err, want)
		}
	}
}
