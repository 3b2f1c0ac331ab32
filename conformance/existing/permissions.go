// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/catalogue"
)

type permission struct {
	verb, group, resource, subresource string
	// namespace is empty for all namespaces.
	namespace string
}

// String returns "create pods/eviction", "get consoles.operator.openshift.io" and so on.
func (p permission) String() string {
	s := p.verb + " " + p.resource
	if p.subresource != "" {
		s += "/" + p.subresource
	}
	if p.group != "" {
		s += "." + p.group
	}
	if p.namespace != "" {
		s += " in namespace " + p.namespace
	}
	return s
}

func (p permission) kind() string { return p.resource + "." + p.group }

// required are the permissions of a tier, beyond those of less disruptive tiers.
var required = map[catalogue.Tier][]permission{
	catalogue.Static: {
		{verb: "get", group: "config.openshift.io", resource: "infrastructures"},
		{verb: "get", group: "config.openshift.io", resource: "ingresses"},
		{verb: "get", group: "config.openshift.io", resource: "clusteroperators"},
		{verb: "get", group: "config.openshift.io", resource: "clusterversions"},
		{verb: "get", group: "operator.openshift.io", resource: "ingresscontrollers", namespace: "openshift-ingress-operator"},
		{verb: "get", group: "operator.openshift.io", resource: "consoles"},
		{verb: "get", group: "operator.openshift.io", resource: "authentications"},
		{verb: "get", group: "operator.openshift.io", resource: "etcds"},
		{verb: "get", resource: "configmaps", namespace: "openshift-cluster-machine-approver"},
		{verb: "list", resource: "nodes"},
		{verb: "list", resource: "pods"},
		{verb: "list", group: "apps", resource: "deployments"},
		{verb: "list", group: "apps", resource: "statefulsets"},
		{verb: "list", group: "apps", resource: "daemonsets"},
		{verb: "list", group: "policy", resource: "poddisruptionbudgets"},
		{verb: "list", group: "machine.openshift.io", resource: "machines"},
		{verb: "list", group: "machineconfiguration.openshift.io", resource: "kubeletconfigs"},
		{verb: "get", group: "machineconfiguration.openshift.io", resource: "controllerconfigs"},
		{verb: "get", group: "machineconfiguration.openshift.io", resource: "machineconfigpools"},
		{verb: "get", group: "machineconfiguration.openshift.io", resource: "machineconfigs"}, // the rendered one of the control plane's pool
	},
	catalogue.Scheduled: {
		{verb: "create", resource: "namespaces"},
		{verb: "list", resource: "namespaces"},
		{verb: "delete", resource: "namespaces"},
		{verb: "get", resource: "serviceaccounts"},
		{verb: "create", group: "apps", resource: "deployments"},
		{verb: "patch", group: "apps", resource: "deployments"},
		{verb: "watch", group: "apps", resource: "deployments"},
		{verb: "delete", group: "apps", resource: "deployments"},
		{verb: "create", group: "policy", resource: "poddisruptionbudgets"},
		{verb: "delete", group: "policy", resource: "poddisruptionbudgets"},
		{verb: "watch", resource: "pods"},
		{verb: "delete", resource: "pods"},
		{verb: "create", resource: "pods", subresource: "eviction"},
		// SNO-APP-003 creates a certificate request as the node bootstrapper.
		{verb: "impersonate", resource: "serviceaccounts", namespace: "openshift-machine-config-operator"},
		{verb: "impersonate", resource: "groups"},
		{verb: "get", group: "certificates.k8s.io", resource: "certificatesigningrequests"},
		{verb: "delete", group: "certificates.k8s.io", resource: "certificatesigningrequests"},
	},
	catalogue.Disruptive: {
		{verb: "watch", group: "apps", resource: "deployments"},
		{verb: "patch", group: "apps", resource: "deployments"},
		{verb: "create", resource: "pods", subresource: "eviction"},
		{verb: "list", group: "coordination.k8s.io", resource: "leases"},
	},
}

// forRecovery are the permissions of a recovery, beyond those of the static tier.
func forRecovery(route types.NamespacedName) []permission {
	return []permission{
		{verb: "get", group: "route.openshift.io", resource: "routes", namespace: route.Namespace},
		{verb: "watch", group: "apps", resource: "deployments"},
		{verb: "delete", resource: "pods", namespace: "openshift-ingress"},
	}
}

func requiredBy(tiers []catalogue.Tier, route *types.NamespacedName) []permission {
	all := slices.Clone(required[catalogue.Static])
	add := func(more []permission) {
		for _, p := range more {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	for _, tier := range tiers {
		add(required[tier])
	}
	if route != nil {
		add(forRecovery(*route))
	}
	return all
}

const parallelReviews = 8

// lacking returns the permissions that the account does not have, apart from those for resources that are not served.
func lacking(ctx context.Context, kube kubernetes.Interface, wanted []permission, served map[string]bool) ([]string, error) {
	missing := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, p := range wanted {
		if !served[p.kind()] && p.verb != "impersonate" { // groups are not a served resource
			continue
		}
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: p.verb, Group: p.group, Resource: p.resource, Subresource: p.subresource, Namespace: p.namespace,
				},
			}}
			answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("check whether the account may %s: %w", p, err)
			}
			if !answer.Status.Allowed {
				missing[i] = p.String()
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(missing, func(s string) bool { return s == "" }), err
}

func forbidden(source string, missing []string, tiers []catalogue.Tier) error {
	advice := "role cluster-reader is enough"
	if slices.Contains(tiers, catalogue.Scheduled) || slices.Contains(tiers, catalogue.Disruptive) {
		advice = "or choose --tiers static, for which role cluster-reader is enough"
	}
	return fmt.Errorf("%w: the account of %s may not:\n  %s\ngrant them; %s", catalogue.ErrForbidden, source, strings.Join(missing, "\n  "), advice)
}
