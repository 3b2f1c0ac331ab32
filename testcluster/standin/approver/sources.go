// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// sources are what one pass has read. What could not be read is nil or unknown, and proves nothing.
type sources struct {
	now      time.Time
	requests []certificatesv1.CertificateSigningRequest
	// approvals counts the approved client requests of each node.
	approvals map[string]int
	cluster   *topology.Cluster
	nodes     sets.Set[string]
	machines  []inventory.Machine
	// presence is that of Machines, also of those that could not be parsed.
	presence  approver.MachinePresence
	inventory *inventory.Inventory
}

// read reads everything that decisions depend on. It returns nil without the requests; otherwise the error joins those
// of other sources, which are missing in the result.
func (r *reconciler) read(ctx context.Context) (*sources, error) {
	s := &sources{now: time.Now(), approvals: map[string]int{}}
	for _, signer := range requests.Signers {
		var list certificatesv1.CertificateSigningRequestList
		if err := r.live.List(ctx, &list, client.MatchingFields{"spec.signerName": signer}); err != nil {
			return nil, fmt.Errorf("listing the requests for %s: %w", signer, err)
		}
		s.requests = append(s.requests, list.Items...)
	}
	for i := range s.requests {
		if node := requests.ApprovedFor(&s.requests[i]); node != "" {
			s.approvals[node]++
		}
	}
	return s, errors.Join(r.readTopology(ctx, s), r.readNodes(ctx, s), r.readMachines(ctx, s))
}

// readTopology leaves it nil without the object: the flow for client certificates waits for it.
func (r *reconciler) readTopology(ctx context.Context, s *sources) error {
	infrastructure, err := standin.Get(ctx, r.live, "", standin.ConfigName, &configv1.Infrastructure{})
	if err != nil || infrastructure == nil {
		return err
	}
	cluster, err := topology.FromInfrastructure(infrastructure)
	if err != nil {
		return fmt.Errorf("reading the topology: %w", err)
	}
	s.cluster = &cluster
	return nil
}

func (r *reconciler) readNodes(ctx context.Context, s *sources) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	s.nodes = sets.New[string]()
	for i := range list.Items {
		s.nodes.Insert(list.Items[i].Name)
	}
	return nil
}

// readMachines reads the inventory, and whether there are Machines. They are absent only if they were listed and there
// are none, or the kind is not served. NotFound: it is no longer served, and the client has cached that it was.
func (r *reconciler) readMachines(ctx context.Context, s *sources) error {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineList"})
	if err := r.live.List(ctx, &list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing the Machines: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx)
	s.presence = approver.MachinesAbsent
	for i := range list.Items {
		s.presence = approver.MachinesPresent
		machine, err := inventory.MachineOf(&list.Items[i])
		if err != nil {
			log.Error(err, "Ignoring a Machine")
			continue
		}
		s.machines = append(s.machines, machine)
	}
	machines, faults := inventory.FromMachines(s.machines...)
	for _, fault := range faults {
		log.Info("Ignoring a Machine", "reason", fault.Error())
	}
	s.inventory = machines
	return nil
}
