// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/render/store"
)

func clientOf(t *testing.T, o Operator) operatorClient {
	t.Helper()
	s, err := store.New(o.Resource())
	if err != nil {
		t.Fatal(err)
	}
	return o.client(s.Session("test", o.Pattern()))
}

func wait(d time.Duration) { <-time.After(d) }

// Writes of the client are stored, and refused for an old version.
func TestOperatorClient(t *testing.T) {
	for _, o := range []Operator{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler} {
		t.Run(o.Kind(), func(t *testing.T) {
			c, ctx := clientOf(t, o), t.Context()
			spec, _, version, err := c.GetOperatorState()
			if err != nil || spec.ManagementState != operatorv1.Managed {
				t.Fatalf("got %v, %v", spec, err)
			}
			spec.LogLevel = operatorv1.Debug
			updated, newVersion, err := c.UpdateOperatorSpec(ctx, version, spec)
			if err != nil || updated.LogLevel != operatorv1.Debug || newVersion == version {
				t.Fatalf("got %v, version %s, %v", updated, newVersion, err)
			}
			if _, _, err := c.UpdateOperatorSpec(ctx, version, spec); !apierrors.IsConflict(err) {
				t.Errorf("update of an old version: %v", err)
			}
			if err := c.ApplyOperatorStatus(ctx, "applier", operatorv1ac.OperatorStatus().WithVersion("4")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.updateStatus(ctx, func(s state) error {
				s.status.LatestAvailableRevision, s.spec.LogLevel = 3, operatorv1.Trace
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			spec, status, _, err := c.GetOperatorState()
			if err != nil || spec.LogLevel != operatorv1.Debug || status.LatestAvailableRevision != 3 || status.Version != "4" {
				t.Errorf("got %+v, %+v, %v", spec, status, err)
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
