// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/report"
)

// guardOwner requires one writer, apart from a cluster-version-operator whose override is unmanaged.
func guardOwner() Check {
	return Check{
		ID: "SNO-ETC-004", Title: "The quorum guard has a single owner", Module: etcdGuard, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ETC-3", "the etcd operator owns the quorum guard, which the cluster-version-operator hands over"},
		NotApplicable: firstOf(guardNeeded, func(s *State) string {
			return unless(s.Deployment(guard.Namespace, guard.Name) != nil, "no Deployment guards etcd: today's operators create a guard pod for each node")
		}),
		Run: eachOf([]types.NamespacedName{guard}, func(s *State, d *appsv1.Deployment) []report.Evidence {
			var writers []string
			for _, entry := range d.ManagedFields {
				unmanaged := entry.Manager == versionManager && overridden(s, guard.Namespace, guard.Name)
				if entry.Subresource == "" && writes(entry.FieldsV1, `"f:replicas"`) && !unmanaged {
					writers = append(writers, entry.Manager)
				}
			}
			slices.Sort(writers)
			writers = slices.Compact(writers)
			return []report.Evidence{found(NameOf(d), "writers of spec.replicas", "1", strings.Join(writers, ", "), len(writers) == 1)}
		}),
		Controls: []Control{
			{Name: "both an operator and the " + versionManager + " write it", Change: onState(func(s *State) {
				d := s.Deployment(guard.Namespace, guard.Name)
				writtenByVersion(d)
				another := d.ManagedFields[len(d.ManagedFields)-1]
				another.Manager = "another"
				d.ManagedFields = append(d.ManagedFields, another)
				s.ClusterVersion.Spec.Overrides = nil
			})},
			annotated("an annotation", guard),
		},
	}
}

// writes searches the encoded fields: the accessors do not exist in the oldest supported release or are deprecated in
// the newest.
func writes(fields *metav1.FieldsV1, key string) bool {
	if fields == nil {
		return false
	}
	encoded, err := fields.MarshalJSON()
	return err == nil && strings.Contains(string(encoded), key)
}
