// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
)

// Namespaces and accounts of an installation. That of the agent is fixed: the agent has no flag for it.
const (
	// Namespace is that of the hub, where users have Placements.
	Namespace        = "open-cluster-management"
	hubNamespace     = "open-cluster-management-hub"
	bootstrapAccount = "agent-registration-bootstrap"
	agentNamespace   = "open-cluster-management-agent"
	addonNamespace   = "open-cluster-management-agent-addon"
	// agentAccount has the rights of both halves of an agent that is one process.
	agentAccount = "klusterlet-work-sa"
	// AgentUser is the user name of an agent on its spoke.
	AgentUser = "system:serviceaccount:" + agentNamespace + ":" + agentAccount
)

// ManagedCluster is the kind of a spoke's object on the hub.
var ManagedCluster = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}

const (
	poll = 100 * time.Millisecond
	// restart is how long a program stays ended that ended by itself: an agent does so with each new certificate.
	restart = time.Second
)

// Hub is a cluster with the controllers of a hub.
type Hub struct {
	*embedded.Cluster

	programs assets.Assets
	source   string // folder of OCM's module
	// bootstrap is the kubeconfig file with which spokes ask to join.
	bootstrap string
}

// Start starts a light cluster with the controllers of a hub.
func Start(ctx context.Context, config embedded.Config) (*Hub, error) {
	h := &Hub{}
	var err error
	if h.programs, err = assets.EnsureOCM(ctx, config.Progress); err != nil {
		return nil, err
	}
	if h.source, err = assets.OCMFolder(ctx); err != nil {
		return nil, err
	}
	config.Light, config.CRDs = true, []string{}
	if h.Cluster, err = embedded.Start(ctx, config); err != nil {
		return nil, err
	}
	if err := h.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install the hub: %w", err), h.Stop())
	}
	return h, nil
}

func (h *Hub) install(ctx context.Context) error {
	const manifests, chart = "manifests/cluster-manager/hub/", "deploy/cluster-manager/chart/cluster-manager/templates/"
	err := h.apply(ctx, h.Cluster, []string{hubNamespace, Namespace},
		manifests+"crds/*.yaml",
		// Not those of webhooks.
		manifests+"registration/[cs]*.yaml", manifests+"placement/*.yaml", manifests+"addon-manager/[cs]*.yaml",
		manifests+"*/*executor-admin*.yaml",
		chart+"bootstrap_cluster_role.yaml", chart+"bootstrap_sa*.yaml",
	)
	if err != nil {
		return err
	}
	if h.bootstrap, err = h.KubeconfigForServiceAccount(ctx, Namespace, bootstrapAccount); err != nil {
		return err
	}
	for _, controller := range []struct {
		program, subcommand, account string
		args                         []string
	}{
		{"registration", "controller", "registration-controller-sa", []string{
			"--feature-gates=ManagedClusterAutoApproval=true",
			"--auto-approved-csr-users=system:serviceaccount:" + Namespace + ":" + bootstrapAccount,
		}},
		{"placement", "controller", "placement-controller-sa", nil},
		{"addon", "manager", "addon-manager-controller-sa", nil},
	} {
		kubeconfig, err := h.KubeconfigForServiceAccount(ctx, hubNamespace, controller.account)
		if err != nil {
			return err
		}
		args := append([]string{controller.subcommand, "--kubeconfig=" + kubeconfig, "--namespace=" + hubNamespace}, controller.args...)
		if _, err := h.run(ctx, h.Cluster, controller.program, args...); err != nil {
			return err
		}
	}
	return nil
}

// Join installs an agent on a cluster and runs it, with the name of the cluster on the hub. It returns the agent when
// the cluster is available there.
func (h *Hub) Join(ctx context.Context, name string, spoke *embedded.Cluster) (*embedded.Component, error) {
	agent, err := h.join(ctx, name, spoke)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	return agent, nil
}

func (h *Hub) join(ctx context.Context, name string, spoke *embedded.Cluster) (*embedded.Component, error) {
	const manifests = "manifests/klusterlet/"
	if err := h.apply(ctx, spoke, []string{agentNamespace, addonNamespace}, manifests+"managed/*.yaml", manifests+"management/*role*.yaml"); err != nil {
		return nil, err
	}
	// The operator makes it in code: what a ManifestWork reads or writes needs roles with this label.
	aggregate := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:klusterlet-work:aggregate"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"}},
		}},
	}
	if err := spoke.Client().Create(ctx, aggregate); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create ClusterRole %s: %w", aggregate.Name, err)
	}
	kubeconfig, err := spoke.KubeconfigForServiceAccount(ctx, agentNamespace, agentAccount)
	if err != nil {
		return nil, err
	}
	// A spoke may have agents of several hubs.
	id := fmt.Sprintf("hub-kubeconfig-%.4x", sha256.Sum256([]byte(h.Dir())))
	credentials := filepath.Join(spoke.Dir(), id)
	if err := os.Mkdir(credentials, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the hub's credentials: %w", err)
	}
	agent, err := h.run(ctx, spoke, "registration-operator", "agent", "--kubeconfig="+kubeconfig, "--namespace="+agentNamespace,
		"--spoke-cluster-name="+name, "--agent-id="+name+id, "--bootstrap-kubeconfig="+h.bootstrap, "--hub-kubeconfig-dir="+credentials, "--hub-kubeconfig-secret="+id,
		"--workload-source-driver=kube", "--workload-source-config="+filepath.Join(credentials, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	return agent, h.waitAvailable(ctx, name)
}

// waitAvailable waits until the hub reports a spoke as available.
func (h *Hub) waitAvailable(ctx context.Context, name string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		cluster := &unstructured.Unstructured{}
		cluster.SetGroupVersionKind(ManagedCluster)
		if last = h.Client().Get(ctx, client.ObjectKey{Name: name}, cluster); last != nil {
			return false, nil
		}
		conditions, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
		last = fmt.Errorf("its conditions are %v", conditions)
		for _, condition := range conditions {
			if its, ok := condition.(map[string]any); ok && its["type"] == "ManagedClusterConditionAvailable" && its["status"] == string(metav1.ConditionTrue) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until ManagedCluster %s is available: %w", name, errors.Join(err, last))
	}
	return nil
}

// run runs a program with a cluster, and again after it has ended by itself, as a kubelet would. It is the only one of
// its kind, and serves probes and metrics, which nobody asks for: the agent fails without a port.
func (h *Hub) run(ctx context.Context, c *embedded.Cluster, program string, args ...string) (*embedded.Component, error) {
	port, err := embedded.FreePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	args = append(args, fmt.Sprintf("--listen=127.0.0.1:%d", port), "--disable-leader-election")
	return c.RunProcess(ctx, embedded.Process{
		Name: program, Path: h.programs.Program(program), Args: args,
		Ended: Restart(ctx),
	})
}

// Restart returns what starts a program again that has ended by itself.
func Restart(ctx context.Context) func(*embedded.Component, string) {
	return func(p *embedded.Component, _ string) {
		time.AfterFunc(restart, func() { _ = p.Start(context.WithoutCancel(ctx)) }) // it fails when the cluster was stopped meanwhile
	}
}
