// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

// The program follows changes of the topology, and writes nothing while nothing changes or after a restart.
func TestProgram(t *testing.T) {
	c := install(t, sr, needs, 1)
	p := c.Start()
	for _, several := range []bool{false, true, false} {
		if several {
			c.flip(ha)
			c.installNodes(3)
			c.Eventually("the override is gone", c.overridesAre("absent"))
			c.Eventually("there are three of each", c.onThree)
		} else {
			c.flip(sr)
			c.Eventually("the override is set", c.overridesAre(set))
			c.Eventually("there is one of each", c.onOne)
		}
		c.Eventually("it waits for the rollout", c.HasCondition(authenticationObject, condition, "True", "RollingOut"))
		c.rollOut()
		c.Eventually("the patch is in force", c.HasCondition(authenticationObject, condition, "True", "AsExpected"))
		p.CheckNoWrites(3)
	}
	p.Eventually("the metric is set", p.HasMetric(1, "sno_patch_in_force", `module="auth"`, `object="authentication/cluster"`))
	p.Stop()

	c.Server.NoWrites(t, suite.User(), func() {
		p = c.Start()
		p.Eventually("the new process has reconciled", func() error {
			n, err := p.Metric("controller_runtime_reconcile_total")
			if err == nil && n == 0 {
				err = errors.New("no reconcile yet")
			}
			return err
		})
		p.Touch(1)
		p.Stop()
	})
	c.flip(external)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	c.Check(c.overridesAre("absent"), c.ownsNothing)
	l.CheckNoWrites()
	if seen := c.Events(metav1.NamespaceDefault); seen["Normal RollingOut"] == 0 || seen["Normal AsExpected"] == 0 {
		t.Errorf("events: %v", seen)
	}
}

// patch/apply tests that a dry run writes nothing.
func TestDryRun(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.Reconciler("--dry-run")
	l.CheckResult(l.Reconcile(), patch.WouldChange, "DryRun")
	c.Check(c.overridesAre("absent"), c.ownsNothing)
}

// Without permissions for the Deployments, the override is set.
func TestForbidden(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.ReconcilerOf(func(l *modules.Reconciler) (controller.ReconcileFunc, error) {
		nobody := c.Server.Client(t, "nobody")
		env := l.Environment
		env.Client = interceptor.NewClient(env.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(ctx context.Context, own client.WithWatch, intent runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if kind, ok := intent.(interface{ GetKind() string }); ok && kind.GetKind() == "Deployment" {
					return nobody.Apply(ctx, intent, options...)
				}
				return own.Apply(ctx, intent, options...)
			},
		})
		return l.Module.Reconciler(env)
	})
	result := l.Reconcile()
	l.CheckResult(result, patch.Failed, "Forbidden", "deployments.apps in namespace openshift-authentication")
	if result.After == 0 {
		t.Error("there is no retry")
	}
	c.Check(c.overridesAre(set))
}

// Plain Kubernetes serves neither ClusterVersion nor Authentication.
func TestKindsServedLater(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server of its own; make proof runs it")
	}
	c := &cluster{suite.ClusterOn(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}}))}
	c.flip(sr)
	c.Apply("gitops", deploymentOf(serverObject), deploymentOf(apiServerObject))
	c.installNodes(1)
	p := c.Start("--override=always")
	c.Eventually("the Deployments are shaped", c.onOne)
	p.Eventually("it waits for the Authentication", p.HasMetric(1, "sno_blocked", `module="auth"`, `reason="WaitingForObject"`))
	c.rollOut()
	p.CheckNoWrites(2)
	c.InstallCRDs(crds.Authentications)
	c.Create("cluster-version-operator", authenticationOf(managed))
	p.WaitForEnd("the cluster serves kinds that it did not serve before")
	p = c.Start("--override=always")
	c.Eventually("the override is set", c.overridesAre(set))
	c.Eventually("the conditions are there", c.HasCondition(authenticationObject, condition, "True", "AsExpected"))
	p.Stop()
}

func TestFlags(t *testing.T) {
	suite.TestFlags(t, map[string]modules.Invocation{
		"policies":       {Args: []string{"--help"}, Output: []string{"-override", "auto", "always", "never"}},
		"unknown policy": {Args: []string{"--override=sometimes"}, Code: 2, Output: []string{"--override", `"sometimes"`, "auto, always or never"}},
	})
}

func TestManifests(t *testing.T) {
	suite.TestManifests(t, [][6]string{
		{"", "operator.openshift.io", "authentications", "", "cluster", "patch"},
		{"openshift-authentication", "apps", "deployments", "", "oauth-openshift", "patch"},
		{"openshift-oauth-apiserver", "apps", "deployments", "", "apiserver", "patch"},
	}, [][6]string{
		{"", "operator.openshift.io", "authentications", "", "cluster", "update"},
		{"", "operator.openshift.io", "authentications", "", "other", "patch"},
		{"", "operator.openshift.io", "authentications", "", "", "create"},
		{"", "config.openshift.io", "authentications", "", "cluster", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "patch"},
		{"", "", "nodes", "", "master-0", "patch"},
		{"openshift-authentication", "apps", "deployments", "", "other", "patch"},
		{"openshift-authentication", "apps", "deployments", "", "oauth-openshift", "delete"},
		{"openshift-oauth-apiserver", "apps", "deployments", "", "other", "patch"},
		{"openshift-oauth-apiserver", "apps", "deployments", "scale", "apiserver", "patch"},
		{"openshift-oauth-apiserver", "", "pods", "", "", "list"},
		{"openshift-authentication", "", "secrets", "", "", "get"},
	})
}

// The account may change nothing but what the module patches.
func TestPolicies(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.TestPolicies(
		modules.Change{Object: serverObject, Patch: `{"spec":{"replicas":3,"strategy":{"type":"Recreate","rollingUpdate":null}}}`, Permissible: true},
		modules.Change{Object: serverObject, Patch: `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`},
		modules.Change{Object: apiServerObject, Patch: `{"spec":{"template":{"spec":{"serviceAccountName":"attacker"}}}}`},
		modules.Change{Object: apiServerObject, Patch: `{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{}}}}}}`},
		modules.Change{Object: authenticationObject, Patch: `{"spec":{"unsupportedConfigOverrides":{"` + auth.OverrideKey + `":true}}}`, Permissible: true},
		modules.Change{Object: authenticationObject, Patch: `{"spec":{"unsupportedConfigOverrides":{"other":true}}}`},
		modules.Change{Object: authenticationObject, Patch: `{"spec":{"managementState":"Removed"}}`},
		modules.Change{Object: authenticationObject, Status: true, Patch: `{"status":{"conditions":[{"type":"Degraded","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
	)
}
