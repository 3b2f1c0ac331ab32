package manager

import (
	"context"
	"fmt"
	"testing"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
)

// shown is a sink that keeps the reasons of what it is to show.
type shown chan string

func (s shown) Show(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	for _, c := range conditions {
		if c.Type == patch.InForceCondition("Sample") {
			s <- c.Reason
		}
	}
	return 0, nil
}

// about is a module that is about one object.
type about struct {
	sample
	object Object
}

func (a *about) Objects() []Object { return []Object{a.object} }

// What is on its way and was overtaken by a change before it could be told is not told, but what is told after it.
func TestOvertakenIsNotTold(t *testing.T) {
	server := shared.Server(t)
	admin, of := server.Admin(t), watched
	of.Namespace = server.Namespace(t)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}, Data: map[string]string{"k": "rest"}}
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(server.Config(t, "sample", "system:masters"), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	reasons := make(shown, 10)
	c := &Controller{Reporter: &status.Reporter{Module: "sample", Prefix: "Sample", Object: "configmap/one", Sink: reasons}}
	c.Look = func(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
		_, live, err := Read[corev1.ConfigMap](ctx, mgr.GetClient(), of)
		if err != nil {
			return nil, patch.Result{}, err
		}
		if live.Data["k"] == "rest" {
			return nil, patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected}, nil
		}
		// This is what a module's own write does, and whoever answers it.
		before := c.changes.Load()
		live.Data["k"] = "rest"
		if err := admin.Update(ctx, live); err != nil {
			return nil, patch.Result{}, err
		}
		err = wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return c.changes.Load() != before, nil
		})
		if err != nil {
			return nil, patch.Result{}, fmt.Errorf("the watch tells nothing: %w", err)
		}
		return nil, patch.Result{State: patch.Progressing, Reason: "Busy"}, nil
	}
	if err := c.Watch(mgr, &about{object: of}, Environment{}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = mgr.Start(t.Context()) }()
	next := func() string {
		t.Helper()
		select {
		case reason := <-reasons:
			return reason
		case <-time.After(time.Minute):
			t.Fatal("nothing is shown")
		}
		return ""
	}
	if reason := next(); reason != patch.ReasonAsExpected {
		t.Fatalf("at rest it shows %s", reason)
	}
	if err := admin.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":"busy"}}`))); err != nil {
		t.Fatal(err)
	}
	if reason := next(); reason != patch.ReasonAsExpected {
		t.Errorf("it shows %s, which was overtaken", reason)
	}
}

// Only what is on its way can be overtaken, and where something changes all the time it is told all the same.
func TestOvertakenIsToldAfterAll(t *testing.T) {
	for name, test := range map[string]struct {
		result patch.Result
		quiet  bool
		want   int
	}{
		"on its way":              {patch.Result{State: patch.Progressing}, false, maxUntold + 1},
		"on its way, and no news": {patch.Result{State: patch.Progressing}, true, 1},
		"there":                   {patch.Result{State: patch.InForce}, false, 1},
		"blocked":                 {patch.Result{State: patch.Blocked}, false, 1},
		"waiting":                 {patch.Result{State: patch.Waiting}, false, 1},
	} {
		reasons := make(shown, 1)
		c := &Controller{Reporter: &status.Reporter{Module: "sample", Prefix: "Sample", Sink: reasons}}
		c.Look = func(context.Context) (*unstructured.Unstructured, patch.Result, error) {
			if !test.quiet {
				c.changes.Add(1)
			}
			return nil, test.result, nil
		}
		for again := range 2 {
			looks := 0
			for len(reasons) == 0 && looks < 10 {
				looks++
				if _, err := c.Reconcile(t.Context(), reconcile.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			if len(reasons) == 0 || looks != test.want {
				t.Fatalf("%s, time %d: %d told at look %d, want it at %d", name, again+1, len(reasons), looks, test.want)
			}
			<-reasons
		}
	}
}
