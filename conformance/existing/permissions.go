package existing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/checks"
)

// permission is what the account of a run must be allowed to do.
type permission struct {
	verb, group, resource, subresource string
	// namespace is empty for all.
	namespace string
}

// String is as people say it: "create pods/eviction", "get consoles.operator.openshift.io".
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

// kind is the resource as the server lists it.
func (p permission) kind() string { return p.resource + "." + p.group }

// required are the permissions that a tier needs, beyond those of the milder tiers.
var required = map[checks.Tier][]permission{
	checks.Static: {
		{verb: "get", group: "config.openshift.io", resource: "infrastructures"},
		{verb: "get", group: "config.openshift.io", resource: "ingresses"},
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
		{verb: "get", group: "machineconfiguration.openshift.io", resource: "machineconfigpools"},
		{verb: "get", group: "machineconfiguration.openshift.io", resource: "machineconfigs"}, // the one of which a pool's kubelets read their configuration
	},
	checks.Scheduled: {
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
		// A stranger's request to join is made as the node bootstrapper makes it.
		{verb: "impersonate", resource: "serviceaccounts", namespace: "openshift-machine-config-operator"},
		{verb: "impersonate", resource: "groups"},
		{verb: "get", group: "certificates.k8s.io", resource: "certificatesigningrequests"},
		{verb: "delete", group: "certificates.k8s.io", resource: "certificatesigningrequests"},
	},
	checks.Disruptive: {
		{verb: "watch", group: "apps", resource: "deployments"},
		{verb: "patch", group: "apps", resource: "deployments"},
		{verb: "create", resource: "pods", subresource: "eviction"},
		{verb: "list", group: "coordination.k8s.io", resource: "leases"},
	},
}

// requiredBy are the permissions for some tiers; what is read is always read.
func requiredBy(tiers []checks.Tier) []permission {
	all := slices.Clone(required[checks.Static])
	for _, tier := range tiers {
		for _, p := range required[tier] {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// parallelReviews is how many permissions are asked for side by side.
const parallelReviews = 8

// lacking asks the server which permissions the account does not have. What the server does not serve needs none.
func lacking(ctx context.Context, kube kubernetes.Interface, wanted []permission, served map[string]bool) ([]string, error) {
	missing := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, p := range wanted {
		if !served[p.kind()] && p.verb != "impersonate" { // groups of accounts are nothing that is served
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
				return fmt.Errorf("ask whether the account may %s: %w", p, err)
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

// forbidden names all that is missing at once.
func forbidden(source string, missing []string, tiers []checks.Tier) error {
	advice := "role cluster-reader is enough"
	if slices.Contains(tiers, checks.Scheduled) || slices.Contains(tiers, checks.Disruptive) {
		advice = "or choose --tiers static, for which role cluster-reader is enough"
	}
	return fmt.Errorf("%w: the account of %s may not:\n  %s\nallow it; %s", checks.ErrForbidden, source, strings.Join(missing, "\n  "), advice)
}
