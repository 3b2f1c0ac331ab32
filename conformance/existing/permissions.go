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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/catalogue"
)

// inNamespace follows a permission that is needed in one namespace only.
const inNamespace = " in namespace "

// required are the permissions of a tier, beyond those of less disruptive tiers, as errors name them.
var required = map[catalogue.Tier][]string{
	catalogue.Static: {
		"get infrastructures.config.openshift.io", "get ingresses.config.openshift.io",
		"get clusteroperators.config.openshift.io", "get clusterversions.config.openshift.io",
		"get ingresscontrollers.operator.openshift.io" + inNamespace + "openshift-ingress-operator",
		"get consoles.operator.openshift.io", "get authentications.operator.openshift.io", "get etcds.operator.openshift.io",
		"get configmaps" + inNamespace + "openshift-cluster-machine-approver",
		"list nodes", "list pods", "list deployments.apps", "list statefulsets.apps", "list daemonsets.apps", "list poddisruptionbudgets.policy",
		"list machines.machine.openshift.io",
		"list kubeletconfigs.machineconfiguration.openshift.io", "get controllerconfigs.machineconfiguration.openshift.io",
		"get machineconfigpools.machineconfiguration.openshift.io",
		"get machineconfigs.machineconfiguration.openshift.io", // the rendered one of the control plane's pool
	},
	catalogue.Scheduled: {
		"create namespaces", "list namespaces", "delete namespaces", "get serviceaccounts",
		"create deployments.apps", "patch deployments.apps", "watch deployments.apps", "delete deployments.apps",
		"create poddisruptionbudgets.policy", "delete poddisruptionbudgets.policy",
		"watch pods", "delete pods", "create pods/eviction",
		// SNO-APP-003 creates a certificate request as the node bootstrapper.
		"impersonate serviceaccounts" + inNamespace + "openshift-machine-config-operator", "impersonate groups",
		"get certificatesigningrequests.certificates.k8s.io", "delete certificatesigningrequests.certificates.k8s.io",
	},
	catalogue.Disruptive: {
		"watch deployments.apps", "patch deployments.apps", "create pods/eviction", "list leases.coordination.k8s.io",
	},
}

func requiredBy(tiers []catalogue.Tier, route *types.NamespacedName) []string {
	all := slices.Clone(required[catalogue.Static])
	for _, tier := range tiers {
		all = append(all, required[tier]...)
	}
	if route != nil { // a recovery
		all = append(all, "get routes.route.openshift.io"+inNamespace+route.Namespace, "watch deployments.apps", "delete pods"+inNamespace+"openshift-ingress")
	}
	var once []string
	for _, permission := range all {
		if !slices.Contains(once, permission) {
			once = append(once, permission)
		}
	}
	return once
}

func attributesOf(permission string) *authorizationv1.ResourceAttributes {
	permission, namespace, _ := strings.Cut(permission, inNamespace)
	verb, resource, _ := strings.Cut(permission, " ")
	resource, subresource, _ := strings.Cut(resource, "/")
	of := schema.ParseGroupResource(resource)
	return &authorizationv1.ResourceAttributes{Verb: verb, Group: of.Group, Resource: of.Resource, Subresource: subresource, Namespace: namespace}
}

const parallelReviews = 8

// lacking returns the permissions that the account does not have, apart from those for resources that are not served.
func lacking(ctx context.Context, kube kubernetes.Interface, wanted []string, served map[schema.GroupResource]bool) ([]string, error) {
	missing := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, permission := range wanted {
		of := attributesOf(permission)
		if !served[schema.GroupResource{Group: of.Group, Resource: of.Resource}] && of.Verb != "impersonate" { // groups are not a served resource
			continue
		}
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: of}}
			answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("check whether the account may %s: %w", permission, err)
			}
			if !answer.Status.Allowed {
				missing[i] = permission
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
