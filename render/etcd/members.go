// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// ErrNoAddress is returned for a node without an address for etcd.
var ErrNoAddress = errors.New("no internal address of the family of the service network")

type member struct {
	name    string
	address netip.Addr
}

// members returns one member per node, with an address of the primary family of Services (U-REN-23).
func members(s *inputs.Settings, network *configv1.Network) ([]member, error) {
	ranges := network.Status.ServiceNetwork
	if len(ranges) == 0 {
		ranges = network.Spec.ServiceNetwork
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("network cluster: spec.serviceNetwork is empty: %w", ErrNoAddress)
	}
	services, err := netip.ParsePrefix(ranges[0])
	if err != nil {
		return nil, fmt.Errorf("network cluster: serviceNetwork: %w", err)
	}
	var all []member
	for _, node := range s.Nodes {
		i := slices.IndexFunc(node.Addresses, func(a netip.Addr) bool { return a.Is6() == services.Addr().Is6() })
		if i < 0 {
			return nil, fmt.Errorf("node %s: status.addresses: %w %s", node.Name, ErrNoAddress, services)
		}
		all = append(all, member{name: node.Name, address: node.Addresses[i]})
	}
	return all, nil
}

func host(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

func (m member) url(port int) string { return fmt.Sprintf("https://%s:%d", host(m.address), port) }

func initialCluster(all []member) string {
	peers := make([]string, len(all))
	for i, m := range all {
		peers[i] = m.name + "=" + m.url(peerPort)
	}
	return strings.Join(peers, ",")
}

func clientURLs(all []member) string {
	urls := make([]string, len(all))
	for i, m := range all {
		urls[i] = m.url(clientPort)
	}
	slices.Sort(urls)
	return strings.Join(urls, ",")
}

// endpointsOf returns ConfigMap data. Keys are base64 without padding: they cannot contain colons (U-REN-23).
func endpointsOf(all []member) map[string]string {
	data := map[string]string{}
	for _, m := range all {
		data[base64.RawStdEncoding.EncodeToString([]byte(m.address.String()))] = m.address.String()
	}
	return data
}

// writeEndpoints returns the loop that writes the endpoints. The stock operator reads them from the running members.
func writeEndpoints(s *inputs.Settings) loop.Loop {
	return loop.Loop{
		Name:   component + ": endpoints",
		Writes: store.ConfigMaps(endpoints.Namespace, endpoints.Name),
		New: loop.Stateless(func(ctx context.Context, session *store.Session) error {
			network, err := session.Config().ConfigV1().Networks().Get(ctx, "cluster", metav1.GetOptions{})
			if err != nil {
				return err
			}
			all, err := members(s, network)
			if err != nil {
				return err
			}
			return librarygo.Apply(ctx, session, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: endpoints.Namespace, Name: endpoints.Name},
				Data:       endpointsOf(all),
			})
		}),
	}
}
