// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

// R-SNO-9: where the ingress operator reverts the patch, the module stops writing and reports that.
func TestOperatorReverts(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", one)
	reverts := 0
	l := c.reconciler()
	l.OtherClients = []func(){func() {
		if ic := c.controller(); ic.Spec.NodePlacement != nil {
			ic.Spec.NodePlacement = nil
			c.Update(stock, ic)
			reverts++
		}
	}}
	result := l.Settle()
	l.CheckResult(result, patch.Reverted, "Reverted")
	if reverts != 1 || !strings.Contains(result.Message, "opt-out") {
		t.Errorf("reverted %d times, want once, with a message about opt-out: %s", reverts, result.Message)
	}
	for beat := range 3 { // other writes of the operator have no effect
		c.Patch(stock, controllerObject, `{"metadata":{"annotations":{"test.example.com/beat":"%d"}}}`, beat)
		l.CheckNoWrites()
	}
	c.NoError(c.spec(nil, one)())
}

func TestForbidden(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", two)
	role := &rbacv1.Role{}
	c.NoError(c.Admin.Get(t.Context(), client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: suite.Program()}, role))
	permitted := role.DeepCopy().Rules
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, "ingresscontrollers") {
			role.Rules[i].Verbs = []string{"get", "list", "watch"}
		}
	}
	c.Update("oc", role)
	p := c.Start()
	c.Eventually("it reports that it is forbidden", c.inForce("False", "Forbidden"))
	c.NoError(c.spec(nil, two)())
	role.Rules = permitted
	c.Update("oc", role)
	c.Eventually("it is pinned once that is permitted", func() error {
		p.Touch(1) // RBAC takes effect with a delay
		return c.pinned(one)()
	})
	c.Eventually("the patch is in force", func() error {
		c.rollOut()
		return c.inForce("True", "AsExpected")()
	})
	c.Eventually("the metric is cleared", p.HasMetric(0, "sno_blocked", `module="ingress"`))
	c.Eventually("there is one warning", func() error {
		if got := c.events(); got["Warning Forbidden"] != 1 {
			return fmt.Errorf("events: %v", got)
		}
		return nil
	})
}

// The controller waits for kinds and objects that do not exist yet, reports them, and needs no restart.
func TestWaitsForKindsAndObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts API servers of its own; make proof runs it")
	}
	c := &cluster{suite.ClusterOn(t, apiserver.Start(t, apiserver.Options{}))}
	p := c.Start()
	p.WaitForLog(`"Waiting for the cluster to serve kinds" kinds="Infrastructure.config.openshift.io/v1, Ingress.config.openshift.io/v1, ` +
		`IngressController.operator.openshift.io/v1"`)
	c.Eventually("it is not ready", func() error {
		code, body, err := p.Probe("/readyz?verbose")
		if err == nil && code != http.StatusInternalServerError {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	if code, body, err := p.Probe("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz while waiting: %d %s %v; a restart would not help", code, body, err)
	}
	c.InstallCRDs(crds.Ingresses, crds.IngressControllers, crds.Infrastructures)
	// An older or a newer API server may accept any status.
	crd := modules.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", crds.Infrastructures).Unstructured()
	c.NoError(c.Admin.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace",
		"path":"/spec/versions/0/schema/openAPIV3Schema/properties/status","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`))))
	p.Ready()
	p.WaitForLog(`"Cluster serves every kind"`)

	c.Eventually("it waits for the IngressController", p.HasMetric(1, "sno_blocked", `reason="WaitingForObject"`))
	c.create("default", two)
	c.Eventually("it waits for the topology", c.inForce("False", "WaitingForInfrastructure"))
	c.NoError(c.spec(nil, two)())
	c.SetTopology(sr, sr)
	c.Eventually("it is pinned", c.pinned(one))
	c.Eventually("it waits for the router", c.inForce("True", "RouterRollingOut"))

	p.Touch(1)
	c.Server.NoWrites(t, suite.User(), func() {
		c.Eventually("the API server accepts any status", func() error {
			return c.Admin.Status().Patch(t.Context(), controller.Infrastructure.Unstructured(),
				client.RawPatch(types.MergePatchType, []byte(`{"status":{"infrastructureTopology":7}}`)))
		})
		p.WaitForLog("Topology cannot be read, keeping the last one")
		p.Touch(2)
	})
	c.NoError(c.pinned(one)())
	c.SetTopology(sr, "Quantum")
	c.Eventually("an unknown topology counts as highly available", c.released(two))
	c.Eventually("it is reported", c.inForce("False", "NotNeeded", `"Quantum"`))
	c.PatchStatus("installer", controller.Infrastructure,
		`{"status":{"infrastructureTopology":null,"controlPlaneTopology":null,"highAvailabilityMode":"None"}}`)
	c.Eventually("the mode of an old prototype is read", c.pinned(one))
}
