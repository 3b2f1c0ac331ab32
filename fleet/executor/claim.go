// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/feedback"
)

// ClaimName is the name of the ManifestWork of [Claim], in the namespace of each cluster.
const ClaimName = "addon-" + fleet.AddOn + "-claim"

// claimant begins the name of a hub's field manager; the work agent wants the first half of it.
const claimant = "work-agent-sno-"

// ErrOtherHub is returned for a cluster that another hub has claimed.
var ErrOtherHub = errors.New("another hub manages the cluster: opt it out there, or if that hub is gone remove the annotation " +
	fleet.HubAnnotation + " from its Namespace " + fleet.Namespace)

// Claim returns the ManifestWork that comes before all others of a cluster. It marks the Namespace of the controllers
// with the hub, which has a field manager of its own: the work agent does not replace the mark of another hub. It also
// reads what an installation has published.
func Claim(addon *addonv1alpha1.ManagedClusterAddOn, hub types.UID) (*workv1.ManifestWork, error) {
	object, option := feedback.Installation()
	namespace := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: fleet.Namespace, Annotations: map[string]string{fleet.HubAnnotation: string(hub)}},
	}
	work, err := newWork(addon, ClaimName, []runtime.Object{namespace, object})
	if err != nil {
		return nil, err
	}
	id := option.ResourceIdentifier
	work.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Resource: id.Resource, Namespace: id.Namespace, Name: id.Name}}},
	}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{option, {
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "namespaces", Name: fleet.Namespace},
		UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{
			FieldManager: claimant + strings.SplitN(string(hub), "-", 2)[0],
		}},
	}}
	return work, nil
}

// Claimed is [Applied] for the ManifestWork of a claim: also an ErrOtherHub.
func Claimed(work *workv1.ManifestWork) error {
	err := Applied(work)
	if errors.Is(err, ErrNotApplied) && strings.Contains(err.Error(), `conflict with "`+claimant) {
		return fmt.Errorf("%w: %w", ErrOtherHub, err)
	}
	return err
}
