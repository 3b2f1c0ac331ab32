// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/testcluster/stock"
)

// The stand-ins create what the stock operators create, property by property, on one node and on two with guards.
func TestStandInsAreStock(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]stock.Property{
		"none-sno": slices.Concat(stock.Properties(), stock.HostNetworkProperties()),
		"two-node": slices.Concat(stock.Properties(), stock.HostNetworkProperties(), stock.GuardProperties()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(name, Baseline)
			o.RealMinReadySeconds = true
			s, err := start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			for _, p := range want {
				objects := list(t, s, p.Object)
				if len(objects) == 0 {
					t.Errorf("%s %s: not found", p.Object.Kind, p.Object.ObjectKey)
				}
				for _, object := range objects {
					got, found := at(object.Object, p.Pointer)
					var wanted any
					if err := json.Unmarshal([]byte(p.Value), &wanted); err != nil {
						t.Fatalf("%s: %v", p.Pointer, err)
					}
					if diff := cmp.Diff(wanted, plain(t, got)); diff != "" || !found {
						t.Errorf("%s %s, %s, as in %s %s (-want +got):\n%s", p.Object.Kind, object.GetName(), p.Pointer, p.Source.Repository, p.Source.Commit, diff)
					}
				}
			}
			checkRelations(t, s)
		})
	}
}

// checkRelations checks what a table of single values does not contain.
func checkRelations(t *testing.T, s *system) {
	t.Helper()
	var nodes corev1.NodeList
	var canaries corev1.PodList
	for _, err := range []error{
		s.Cluster.Client().List(t.Context(), &nodes), s.Cluster.Client().List(t.Context(), &canaries, client.InNamespace(scenario.CanaryNamespace)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(canaries.Items) != len(nodes.Items) {
		t.Errorf("%d canaries on %d nodes without taints", len(canaries.Items), len(nodes.Items))
	}
	ic, err := s.Object(t.Context(), "ingress")
	if err != nil {
		t.Fatal(err)
	}
	var owned []string
	for _, entry := range ic.GetManagedFields() {
		if entry.Manager != scenario.StockOperatorManager || entry.Subresource != "" || entry.Operation != metav1.ManagedFieldsOperationUpdate {
			continue
		}
		var fields map[string]map[string]any
		if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
			t.Fatal(err)
		}
		for field := range fields["f:spec"] {
			if name, is := strings.CutPrefix(field, "f:"); is {
				owned = append(owned, name)
			}
		}
	}
	slices.Sort(owned)
	if diff := cmp.Diff(stock.IngressControllerFields(), owned); diff != "" {
		t.Errorf("the ingress operator's fields in spec (-want +got):\n%s", diff)
	}
}

func list(t *testing.T, s *system, o stock.Object) []unstructured.Unstructured {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(o.GroupVersionKind.GroupVersion().WithKind(o.Kind + "List"))
	if err := s.Cluster.Client().List(t.Context(), all, client.InNamespace(o.Namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all.Items, func(each unstructured.Unstructured) bool {
		_, static := each.GetAnnotations()[corev1.MirrorPodAnnotationKey] // that of etcd is of no operator here
		return static || o.Name != "" && each.GetName() != o.Name
	})
}

func at(value any, pointer string) (any, bool) {
	for _, segment := range strings.Split(pointer, "/")[1:] {
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		switch in := value.(type) {
		case map[string]any:
			next, found := in[segment]
			if !found {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(segment)
			if key, wanted, is := strings.Cut(strings.Trim(segment, "[]"), "="); is {
				i = slices.IndexFunc(in, func(each any) bool { m, _ := each.(map[string]any); return fmt.Sprint(m[key]) == wanted })
			} else if err != nil {
				return nil, false
			}
			if i < 0 || i >= len(in) {
				return nil, false
			}
			value = in[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// plain converts a value to the types of encoding/json.
func plain(t *testing.T, value any) (read any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}
