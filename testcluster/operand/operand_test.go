// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/eventually"
	"github.com/solonode/sno/testcluster/scenario"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	os.Exit(m.Run())
}

// onCluster has a control-plane node and a worker.
type onCluster struct {
	*testing.T
	*embedded.Cluster
}

func TestOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	c, err := embedded.Start(t.Context(), embedded.Config{CRDs: []string{}})
	if err != nil {
		t.Fatalf("this test needs a real API server: %v", err)
	}
	defer func() { _ = c.Stop() }()
	on := onCluster{t, c}
	on.must(c.AddNodes(t.Context(),
		embedded.NodeSpec{Name: "master-0", Roles: []string{"master"}}, embedded.NodeSpec{Name: "worker-0", Roles: []string{"worker"}}))

	pinned, apart, pair := on.create("pinned", "master", 1, false), on.create("apart", "master", 1, true), on.create("pair", "worker", 2, false)
	on.must(WaitSettled(t.Context(), c.Client(), []scenario.Operand{pinned, apart}))
	on.never("more pods than there are", "is to have 2 replicas", func(o *scenario.Operand) { o.Replicas = 2 }, pinned)
	on.never("two pods on one node", "share a node", func(*scenario.Operand) {}, pair)
	on.never("on another pool", "which is no control-plane node", func(o *scenario.Operand) { o.Replicas, o.Pool = 2, scenario.PoolMaster }, pair)
	on.never("not there", "there is no Deployment", func(o *scenario.Operand) { o.Name = "absent" }, pinned)

	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := WaitSettled(short, c.Client(), []scenario.Operand{pair}); !errors.Is(err, ErrNotSettled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the timeout: %v, want ErrNotSettled", err)
	}

	// One Deployment rolls, the other cannot, because its old pod excludes the new one from the only node.
	on.must(Roll(t.Context(), c, []scenario.Operand{pinned, apart}, "2"))
	on.must(WaitSettled(t.Context(), c.Client(), []scenario.Operand{pinned}))
	on.never("rolled out", "anti-affinity rules", func(*scenario.Operand) {}, apart)
	on.drain(pinned)
}

// drain: a drain does not end while a budget refuses.
func (c onCluster) drain(pinned scenario.Operand) {
	c.Helper()
	c.must(c.Client().Create(c.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: pinned.Namespace, Name: pinned.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pinned.Name}},
		},
	}))
	offset, err := c.AuditOffset(c.Context())
	c.must(err)
	ctx, giveUp := context.WithCancel(c.Context())
	defer giveUp()
	ended := make(chan error, 1)
	go func() { ended <- Drain(ctx, c.Cluster, "master-0") }()
	eventually.Succeeds(c, "two evictions are refused", func() error { // the first has been recorded by then
		events, _, err := c.AuditEvents(c.Context(), offset, embedded.AuditFilter{Resource: "pods", Namespace: metav1.NamespaceDefault, WritesOnly: true})
		got := 0
		for _, event := range events {
			if event.ObjectRef.Subresource == "eviction" && event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusTooManyRequests {
				got++
			}
		}
		if err == nil && got < 2 {
			err = fmt.Errorf("%d are", got)
		}
		return err
	})
	giveUp()
	if err := <-ended; !errors.Is(err, ErrDrain) || !strings.Contains(err.Error(), "was refused") {
		c.Errorf("a drain that a budget forbids: %v, want ErrDrain and why", err)
	}
}

func (c onCluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// never waits until a changed expectation is not met, for a reason that contains why.
func (c onCluster) never(what, why string, change func(*scenario.Operand), o scenario.Operand) {
	c.Helper()
	change(&o)
	eventually.Succeeds(c, what+" is "+why, func() error {
		err := unsettled(c.Context(), c.Client(), o)
		switch {
		case err == nil:
			return errors.New("it is as expected")
		case !strings.Contains(err.Error(), why):
			return err
		}
		return nil
	})
}

func (c onCluster) create(name, role string, replicas int32, apart bool) scenario.Operand {
	c.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"node-role.kubernetes.io/" + role: ""},
					Containers:   []corev1.Container{{Name: name, Image: name}},
				},
			},
		},
	}
	if apart {
		deployment.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: deployment.Spec.Selector, TopologyKey: corev1.LabelHostname,
			}},
		}}
	}
	c.must(c.Client().Create(c.Context(), deployment))
	return scenario.Operand{Namespace: metav1.NamespaceDefault, Name: name, Pool: scenario.Pool(role), Replicas: replicas, MinAvailable: 1}
}
