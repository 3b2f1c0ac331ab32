// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
)

// nodeLists lists nodes by labels.
type nodeLists struct {
	client.Reader
	all []corev1.Node
}

func (n nodeLists) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	selector := (&client.ListOptions{}).ApplyOptions(options).LabelSelector
	list.(*corev1.NodeList).Items = slices.DeleteFunc(slices.Clone(n.all), func(node corev1.Node) bool {
		return !selector.Matches(labels.Set(node.Labels))
	})
	return nil
}

// A node with both roles is one node.
func TestControlPlane(t *testing.T) {
	node := func(name string, roles ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for _, role := range roles {
			n.Labels[role] = ""
		}
		return n
	}
	nodes, err := controlPlane(t.Context(), nodeLists{all: []corev1.Node{
		node("arbiter", etcdguard.ArbiterRole), node("both", etcdguard.MasterRole, etcdguard.ArbiterRole), node("master", etcdguard.MasterRole),
		node("worker", "node-role.kubernetes.io/worker"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"both", "master", "arbiter"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
