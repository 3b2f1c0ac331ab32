// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

// membersInterval is how often the members of etcd are read: they cannot be watched.
const membersInterval = 15 * time.Second

type patcher struct {
	controller.Environment
	image     string
	endpoints []string
}

func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	in, etcd, err := p.gather(ctx, cluster)
	if err != nil {
		return nil, patch.Result{}, err
	}
	decided := decision.Decide(in)
	result := decision.Observe(in)
	switch _, action := decided.Write(); {
	case action != decision.Nothing:
		result = p.write(ctx, in, decided)
	case decided.Result != nil:
		result = *decided.Result
	}
	if decided.Deprecation != "" {
		result.Message += ". " + decided.Deprecation
	}
	if in.NeedsMembers() && (result.After == 0 || result.After > membersInterval) {
		result.After = membersInterval
	}
	return etcd, result, ctx.Err()
}

// gather reads the ClusterVersion last, because the guard may be written only while the entries are set.
func (p *patcher) gather(ctx context.Context, cluster *topology.Cluster) (in decision.Inputs, etcd *unstructured.Unstructured, err error) {
	in.Cluster, in.Image, in.ForceConflicts = cluster, p.image, p.Options.ForceConflicts
	var secret *corev1.Secret
	var bundle *corev1.ConfigMap
	group, reading := errgroup.WithContext(ctx)
	group.Go(controller.ReadInto(reading, p.Live, etcdObject, &etcd, &in.Etcd))
	group.Go(func() (err error) {
		in.Nodes, err = controlPlane(reading, p.Live)
		return err
	})
	group.Go(controller.ReadInto(reading, p.Live, deploymentObject, nil, &in.Deployment))
	group.Go(controller.ReadInto(reading, p.Live, budgetObject, nil, &in.Budget))
	group.Go(controller.ReadInto(reading, p.Live, podsBudgetObject, nil, &in.PodsBudget))
	group.Go(controller.ReadInto(reading, p.Live, secretObject, nil, &secret))
	group.Go(controller.ReadInto(reading, p.Live, bundleObject, nil, &bundle))
	if err := group.Wait(); err != nil {
		return in, nil, err
	}
	in.ClientSecret, in.CABundle = secret != nil, bundle != nil
	if in.NeedsMembers() {
		if in.Members, err = p.readMembers(ctx, in.Nodes, secret, bundle); err != nil {
			logr.FromContextOrDiscard(ctx).Info("Reading the members of etcd failed, the guard is not relaxed", "cause", err.Error())
		}
	}
	_, in.ClusterVersion, err = controller.Read[configv1.ClusterVersion](ctx, p.Live, versionObject)
	return in, etcd, err
}

// controlPlane returns the nodes that can have a member of etcd. The list is not nil.
func controlPlane(ctx context.Context, from client.Reader) ([]corev1.Node, error) {
	group, reading := errgroup.WithContext(ctx)
	lists := map[string]*corev1.NodeList{etcdguard.MasterRole: {}, etcdguard.ArbiterRole: {}}
	for role, list := range lists {
		group.Go(func() error {
			if err := from.List(reading, list, client.HasLabels{role}); err != nil {
				return fmt.Errorf("reading the nodes with %s: %w", role, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	nodes := append([]corev1.Node{}, lists[etcdguard.MasterRole].Items...)
	for _, arbiter := range lists[etcdguard.ArbiterRole].Items {
		if !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == arbiter.Name }) {
			nodes = append(nodes, arbiter)
		}
	}
	return nodes, nil
}
