// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/testcluster/stock"
)

var _ = DescribeTable("The stand-ins create what the stock operators create, property by property",
	func(ctx SpecContext, name string, more []stock.Property) {
		o := patient(name, embeddedtarget.Baseline)
		o.RealMinReadySeconds = true
		s := startSystem(ctx, o)
		for _, p := range slices.Concat(stock.Properties(), stock.HostNetworkProperties(), more) {
			objects := s.list(p.Object)
			Expect(objects).NotTo(BeEmpty(), "%s %s", p.Object.Kind, p.Object.ObjectKey)
			for _, object := range objects {
				got, found := at(object.Object, p.Pointer)
				Expect(found).To(BeTrue(), "%s %s has %s", p.Object.Kind, object.GetName(), p.Pointer)
				Expect(json.Marshal(got)).To(MatchJSON(p.Value), "%s %s, %s, as in %s %s", p.Object.Kind, object.GetName(), p.Pointer, p.Source.Repository, p.Source.Commit)
			}
		}
		// What a table of single values does not contain.
		nodes, canaries := &corev1.NodeList{}, &corev1.PodList{}
		Expect(s.kube.List(ctx, nodes)).To(Succeed())
		Expect(s.kube.List(ctx, canaries, client.InNamespace(scenario.CanaryNamespace))).To(Succeed())
		Expect(canaries.Items).To(HaveLen(len(nodes.Items)), "a canary on each node without taints")
		Expect(s.fieldsOfIngressOperator()).To(Equal(stock.IngressControllerFields()))
	},
	Entry("on one node", "none-sno", nil),
	Entry("on two with guards", Label(suite.Long), "two-node", stock.GuardProperties()),
)

// fieldsOfIngressOperator returns the fields in spec of the IngressController that its operator owns.
func (s *system) fieldsOfIngressOperator() (owned []string) {
	GinkgoHelper()
	live := suite.Must(s.Object(s.ctx, framework.Ingress))
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != scenario.StockOperatorManager || entry.Subresource != "" || entry.Operation != metav1.ManagedFieldsOperationUpdate {
			continue
		}
		var fields map[string]map[string]any
		Expect(json.Unmarshal(entry.FieldsV1.Raw, &fields)).To(Succeed())
		for field := range fields["f:spec"] {
			if name, is := strings.CutPrefix(field, "f:"); is {
				owned = append(owned, name)
			}
		}
	}
	slices.Sort(owned)
	return owned
}

func (s *system) list(o stock.Object) []unstructured.Unstructured {
	GinkgoHelper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(o.GroupVersionKind.GroupVersion().WithKind(o.Kind + "List"))
	Expect(s.kube.List(s.ctx, all, client.InNamespace(o.Namespace))).To(Succeed())
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
