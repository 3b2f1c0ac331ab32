// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"sync"
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
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/patch/pages"
	"github.com/solonode/sno/topology"
)

const (
	page          = 500
	parallelCalls = 16

	// The authorities of kubelets.
	authorityNamespace, authorityName, authorityKey = "openshift-config-managed", "csr-controller-ca", "ca-bundle.crt"
)

// machineKind is that of the inventory, and otherMachineKinds are further kinds of Machines that confirm nodes: other
// instances of the approver decide by them.
var (
	machineKind       = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}
	otherMachineKinds = []schema.GroupVersionKind{
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Machine"}, {Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	}
	hostSubnetKind = schema.GroupVersionKind{Group: "network.openshift.io", Version: "v1", Kind: "HostSubnet"}

	errNoCertificate = errors.New("no certificate in PEM form")
)

// notServed reports whether a kind does not exist. NotFound: it is no longer served, and the client has cached that it
// was.
func notServed(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// reader reads without a cache: an approval must not depend on an old object, and lists of whole nodes need much memory
// (U-APP-8).
type reader struct {
	live client.Reader
	call func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
}

// requests returns the requests of both flows.
func (r *reader) requests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	var all []certificatesv1.CertificateSigningRequest
	for _, signer := range requests.Signers {
		err := pages.Each(ctx, func(ctx context.Context, token string) (string, error) {
			var list certificatesv1.CertificateSigningRequestList
			err := r.live.List(ctx, &list, client.MatchingFields{"spec.signerName": signer}, client.Limit(page), client.Continue(token))
			all = append(all, list.Items...)
			return list.Continue, err
		})
		if err != nil {
			return nil, fmt.Errorf("listing the requests for %s: %w", signer, err)
		}
	}
	return all, nil
}

// sources reads everything that decisions depend on, except kubelets. The error joins those of single sources, which
// are missing in the result.
func (r *reader) sources(ctx context.Context, now time.Time, all []certificatesv1.CertificateSigningRequest) (*sources, error) {
	s := &sources{now: now, approvals: map[string]int{}, kubelets: map[string][]*x509.Certificate{}, egress: map[string]requests.EgressIPs{}}
	for i := range all {
		if node := requests.ApprovedFor(&all[i]); node != "" {
			s.approvals[node]++
		}
	}
	var errs []error
	for _, read := range []func(context.Context, *sources) error{r.infrastructure, r.nodes, r.machines} {
		errs = append(errs, read(ctx, s))
	}
	return s, errors.Join(errs...)
}

// infrastructure leaves the topology nil without the object: the flow for client certificates waits for it.
func (r *reader) infrastructure(ctx context.Context, s *sources) error {
	infrastructure := &configv1.Infrastructure{}
	switch err := r.live.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the Infrastructure: %w", err)
	}
	cluster, err := topology.FromInfrastructure(infrastructure)
	if err != nil {
		return fmt.Errorf("reading the topology: %w", err)
	}
	s.cluster = &cluster
	return nil
}

func (r *reader) nodes(ctx context.Context, s *sources) error {
	names := sets.New[string]()
	err := r.each(ctx, corev1.SchemeGroupVersion.WithKind("Node"), 0, func(o *metav1.PartialObjectMetadata) { names.Insert(o.Name) })
	if err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	s.nodes = names
	return nil
}

// each visits the metadata of all objects of a kind, or of the first ones up to a limit.
func (r *reader) each(ctx context.Context, kind schema.GroupVersionKind, limit int, visit func(*metav1.PartialObjectMetadata)) error {
	size := int64(page)
	if limit > 0 {
		size = int64(limit)
	}
	return pages.Each(ctx, func(ctx context.Context, token string) (string, error) {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := r.live.List(ctx, &list, client.Limit(size), client.Continue(token)); err != nil {
			return "", err
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if limit > 0 {
			return "", nil
		}
		return list.Continue, nil
	})
}

// machines reads the inventory, and whether there are Machines of any kind. They are absent only if every kind was
// listed and is empty, or is not served.
func (r *reader) machines(ctx context.Context, s *sources) error {
	found, log := 0, logr.FromContextOrDiscard(ctx)
	err := pages.Each(ctx, func(ctx context.Context, token string) (string, error) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(machineKind.GroupVersion().WithKind(machineKind.Kind + "List"))
		if err := r.live.List(ctx, &list, client.Limit(page), client.Continue(token)); err != nil {
			return "", err
		}
		for i := range list.Items {
			found++
			machine, err := inventory.MachineOf(&list.Items[i])
			if err != nil {
				log.Error(err, "Ignoring a Machine")
				continue
			}
			s.machines = append(s.machines, machine)
		}
		return list.GetContinue(), nil
	})
	if err != nil && !notServed(err) {
		s.machines = nil
		return fmt.Errorf("listing the Machines of %s: %w", machineKind.Group, err)
	}
	machines, faults := inventory.FromMachines(s.machines...)
	for _, fault := range faults {
		log.Info("Ignoring a Machine", "reason", fault.Error())
	}
	s.inventory = machines
	for _, kind := range otherMachineKinds {
		if found > 0 {
			break
		}
		err := r.each(ctx, kind, 1, func(*metav1.PartialObjectMetadata) { found++ })
		if err != nil && !notServed(err) {
			return fmt.Errorf("listing the Machines of %s: %w", kind.GroupVersion(), err)
		}
	}
	s.presence = approver.MachinesAbsent
	if found > 0 {
		s.presence = approver.MachinesPresent
	}
	return nil
}

// callKubelets reads the current certificates of the nodes' kubelets, each once and in parallel. A kubelet that does
// not answer proves nothing, and is no error.
func (r *reader) callKubelets(ctx context.Context, s *sources, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	authority, err := r.authority(ctx)
	if err != nil {
		return err
	}
	s.authority = authority
	var mu sync.Mutex
	var errs []error
	workqueue.ParallelizeUntil(ctx, parallelCalls, len(nodes), func(i int) {
		node, egress := &corev1.Node{}, requests.EgressIPs{}
		err := r.live.Get(ctx, client.ObjectKey{Name: nodes[i]}, node)
		var chain []*x509.Certificate
		if err == nil {
			if chain, err = r.call(ctx, node); err != nil {
				logr.FromContextOrDiscard(ctx).Info("Kubelet presented no certificate", "node", node.Name, "reason", err.Error())
				err = nil
			} else {
				egress, err = r.egressIPs(ctx, node.Name)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("reading node %s: %w", nodes[i], err))
		}
		s.kubelets[nodes[i]], s.egress[nodes[i]] = chain, egress
	})
	return errors.Join(errs...)
}

// authority returns the authorities of the kubelets, or nil if they are not published.
func (r *reader) authority(ctx context.Context) (*x509.CertPool, error) {
	published := &corev1.ConfigMap{}
	switch err := r.live.Get(ctx, client.ObjectKey{Namespace: authorityNamespace, Name: authorityName}, published); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the authorities of kubelets: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(published.Data[authorityKey])) {
		return nil, fmt.Errorf("reading the authorities of kubelets: ConfigMap %s/%s, key %s: %w", authorityNamespace, authorityName, authorityKey, errNoCertificate)
	}
	return pool, nil
}

// egressIPs returns those of OpenShift SDN, which a kubelet requests as well.
func (r *reader) egressIPs(ctx context.Context, node string) (requests.EgressIPs, error) {
	subnet := &unstructured.Unstructured{}
	subnet.SetGroupVersionKind(hostSubnetKind)
	if err := r.live.Get(ctx, client.ObjectKey{Name: node}, subnet); notServed(err) {
		return requests.EgressIPs{}, nil
	} else if err != nil {
		return requests.EgressIPs{}, fmt.Errorf("reading the HostSubnet: %w", err)
	}
	texts, _, err := unstructured.NestedStringSlice(subnet.Object, "egressIPs")
	if err != nil {
		return requests.EgressIPs{}, fmt.Errorf("reading the HostSubnet: %w", err)
	}
	egress := requests.EgressIPs{Node: node}
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			egress.IPs = append(egress.IPs, ip)
		}
	}
	return egress, nil
}
