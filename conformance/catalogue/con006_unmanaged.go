// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/report"
)

// downloadsUnmanaged requires that the cluster-version-operator does not write the Deployment, or that its override is
// unmanaged.
func downloadsUnmanaged() Check {
	return Check{
		ID: "SNO-CON-006", Title: "The cluster-version-operator does not manage the Deployment downloads", Module: console, Level: Core, Tier: Static,
		Requirement: Requirement{"R-CON-2", "the console operator manages the downloads Deployment"},
		Topologies:  []string{"SingleReplica", "External"}, NotApplicable: firstOf(allAbsent(consoles()...), operandsSingle),
		Run: eachOf([]types.NamespacedName{downloads}, func(s *State, d *appsv1.Deployment) []report.Evidence {
			unmanaged := overridden(s, d.Namespace, d.Name)
			manager := "not " + versionManager
			for _, entry := range d.ManagedFields {
				if entry.Manager == versionManager && entry.Subresource == "" {
					manager = versionManager
				}
			}
			got := fmt.Sprintf("written by %s, unmanaged in spec.overrides: %t", manager, unmanaged)
			const want = "not written by " + versionManager + ", or unmanaged in spec.overrides"
			return []report.Evidence{found(NameOf(d), "metadata.managedFields", want, got, unmanaged || manager != versionManager)}
		}),
		Controls: []Control{
			{Name: "the " + versionManager + " writes it", Change: func(in *Input) bool {
				d := in.State.Deployment(downloads.Namespace, downloads.Name)
				if d == nil || in.State.ClusterVersion == nil {
					return false
				}
				writtenByVersion(d)
				in.State.ClusterVersion.Spec.Overrides = nil
				return true
			}},
			annotated("an annotation", downloads),
		},
	}
}
