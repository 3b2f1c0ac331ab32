// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
)

const rolePrefix = "node-role.kubernetes.io/"

// shape sets exactly the roles and taints that the scenario has for a node.
func (e *Env) shape(ctx context.Context, node string, spec embedded.NodeSpec) {
	GinkgoHelper()
	live := suite.Must(e.Cluster.Clientset().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}))
	labels := map[string]any{}
	for label := range live.Labels {
		if strings.HasPrefix(label, rolePrefix) {
			labels[label] = nil
		}
	}
	for _, role := range spec.Roles {
		labels[rolePrefix+role] = ""
	}
	taints := append([]corev1.Taint{}, spec.Taints...)
	for _, taint := range live.Spec.Taints {
		if !strings.HasPrefix(taint.Key, rolePrefix) {
			taints = append(taints, taint)
		}
	}
	body := suite.Must(json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": labels, "resourceVersion": live.ResourceVersion}, "spec": map[string]any{"taints": taints},
	}))
	suite.Must(e.Cluster.Clientset().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}))
}

// withhold stops a node's kubelet and deletes its Node, until it joins.
func (e *Env) withhold(ctx context.Context, node string) {
	GinkgoHelper()
	suite.Must(e.Kind.Exec(ctx, node, "systemctl", "stop", "kubelet"))
	// The pods of kubeadm would conflict when the kubelet starts again.
	suite.Must(e.Kind.Exec(ctx, node, "sh", "-c", "crictl pods --quiet | xargs --no-run-if-empty crictl --timeout=60s rmp --force"))
	Expect(e.Cluster.Clientset().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})).To(Succeed())
}

// AddDay2Workers joins the scenario's day-2 workers, and returns when they are Ready. Further calls do nothing.
func (e *Env) AddDay2Workers(ctx context.Context) {
	GinkgoHelper()
	for _, node := range e.later {
		suite.Must(e.Kind.Exec(ctx, node, "systemctl", "start", "kubelet"))
	}
	Expect(e.Kind.WaitForNodes(ctx, e.later...)).To(Succeed())
	for i, spec := range e.Scenario.Day2Nodes()[:len(e.later)] {
		e.shape(ctx, e.later[i], spec)
	}
	e.later = nil
}
