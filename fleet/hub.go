// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

var (
	// ErrNoHub is returned for a cluster that is no hub.
	ErrNoHub = errors.New("not a hub of Open Cluster Management")
	// ErrNoAddOns is returned for a hub without the API of add-ons.
	ErrNoAddOns = errors.New("the hub does not serve " + addonv1alpha1.GroupVersion.String() + "; enable its add-on manager")
)

// CheckHub returns an ErrNoHub or ErrNoAddOns for the API groups of a cluster that is no hub of a fleet.
func CheckHub(groups *metav1.APIGroupList) error {
	served := sets.New[string]()
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			served.Insert(version.GroupVersion)
		}
	}
	switch {
	case served.Has(workv1.GroupVersion.String()) && !served.Has(clusterv1.GroupVersion.String()):
		return fmt.Errorf("%w: this is one of its managed clusters; use the kubeconfig of the hub", ErrNoHub)
	case !served.Has(clusterv1.GroupVersion.String()):
		return fmt.Errorf("%w: the cluster does not serve %s", ErrNoHub, clusterv1.GroupVersion)
	case !served.Has(addonv1alpha1.GroupVersion.String()):
		return ErrNoAddOns
	}
	return nil
}
