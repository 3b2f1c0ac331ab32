// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"github.com/openshift/library-go/pkg/apiserver/jsonpatch"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/render/store"
)

var operators = []Operator{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler}

func clientOf(t *testing.T, o Operator) operatorClient {
	t.Helper()
	s, err := store.New(o.Resource())
	if err != nil {
		t.Fatal(err)
	}
	return o.client(s.Session("test", o.Pattern()))
}

func wait(d time.Duration) { <-time.After(d) }

// Writes of the client are stored; library-go's fake loses applied specs and patched statuses.
func TestOperatorClient(t *testing.T) {
	for _, o := range operators {
		t.Run(o.Kind(), func(t *testing.T) {
			c, ctx := clientOf(t, o), t.Context()
			spec, status, version, err := c.GetStaticPodOperatorState()
			if err != nil || spec.ManagementState != operatorv1.Managed {
				t.Fatalf("got %v, %v", spec, err)
			}
			spec.ForceRedeploymentReason = "one"
			updated, newVersion, err := c.UpdateStaticPodOperatorSpec(ctx, version, spec)
			if err != nil || updated.ForceRedeploymentReason != "one" || newVersion == version {
				t.Fatalf("got %v, version %s, %v", updated, newVersion, err)
			}
			if _, _, err := c.UpdateOperatorSpec(ctx, version, &spec.OperatorSpec); !apierrors.IsConflict(err) {
				t.Errorf("update of an old version: %v", err)
			}
			if _, err := c.UpdateStaticPodOperatorStatus(ctx, version, status); !apierrors.IsConflict(err) {
				t.Errorf("update of the status of an old version: %v", err)
			}
			spec.LogLevel = operatorv1.Debug
			if _, newVersion, err = c.UpdateOperatorSpec(ctx, newVersion, &spec.OperatorSpec); err != nil {
				t.Fatal(err)
			}
			status.LatestAvailableRevision = 3
			if _, err := c.UpdateOperatorStatus(ctx, newVersion, &status.OperatorStatus); err != nil {
				t.Fatal(err)
			}
			if err := c.ApplyOperatorSpec(ctx, "applier", operatorv1ac.OperatorSpec().WithOperatorLogLevel(operatorv1.Trace)); err != nil {
				t.Fatal(err)
			}
			if err := c.ApplyStaticPodOperatorStatus(ctx, "applier", operatorv1ac.StaticPodOperatorStatus().WithVersion("4")); err != nil {
				t.Fatal(err)
			}
			if err := c.PatchOperatorStatus(ctx, jsonpatch.New().WithTest("/status/version", "4").WithRemove("/status/version", jsonpatch.NewTestCondition("/status/version", "4"))); err != nil {
				t.Fatal(err)
			}
			spec, status, _, err = c.GetStaticPodOperatorState()
			if err != nil {
				t.Fatal(err)
			}
			if spec.ForceRedeploymentReason != "one" || spec.LogLevel != operatorv1.Debug || spec.OperatorLogLevel != operatorv1.Trace {
				t.Errorf("the spec is %+v", spec)
			}
			if status.LatestAvailableRevision != 3 || status.Version != "" {
				t.Errorf("the status is %+v", status)
			}
			if m, err := c.GetObjectMeta(); err != nil || m.Name != "cluster" {
				t.Errorf("the metadata is %v, %v", m, err)
			}
		})
	}
}

// A condition keeps its transition time while its status is the same, and controllers keep each other's.
func TestConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clientOf(t, KubeAPIServer)
		apply := func(manager, condition string, status operatorv1.ConditionStatus, message string) {
			t.Helper()
			err := c.ApplyOperatorStatus(t.Context(), manager, operatorv1ac.OperatorStatus().WithConditions(
				operatorv1ac.OperatorCondition().WithType(condition).WithStatus(status).WithMessage(message)))
			if err != nil {
				t.Fatal(err)
			}
		}
		since := func() map[string]time.Duration {
			t.Helper()
			_, status, _, err := c.GetOperatorState()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]time.Duration{}
			for _, condition := range status.Conditions {
				found[condition.Type+" "+string(condition.Status)+" "+condition.Message] = time.Since(condition.LastTransitionTime.Time)
			}
			return found
		}
		apply("one", "A", operatorv1.ConditionTrue, "first")
		apply("two", "B", operatorv1.ConditionFalse, "")
		wait(time.Minute)
		apply("one", "A", operatorv1.ConditionTrue, "second")
		if diff := cmp.Diff(map[string]time.Duration{"A True second": time.Minute, "B False ": time.Minute}, since()); diff != "" {
			t.Errorf("conditions of the same status (-want +got):\n%s", diff)
		}
		apply("one", "A", operatorv1.ConditionFalse, "third")
		if diff := cmp.Diff(map[string]time.Duration{"A False third": 0, "B False ": time.Minute}, since()); diff != "" {
			t.Errorf("conditions of another status (-want +got):\n%s", diff)
		}
	})
}
