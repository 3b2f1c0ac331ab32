// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"bytes"
	"context"
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/kind"
)

// scriptPod returns a pod that runs a script.
func scriptPod(namespace, name, script string, grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(grace),
			Containers: []corev1.Container{{
				Name: "main", Image: FullImageName("cli"), Command: []string{"bash", "-c", script},
			}},
		},
	}
}

// newNamespace creates a namespace for the spec, which ends with it.
func newNamespace(ctx context.Context, e *Env) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sno-e2e-"}}
	Expect(e.Cluster.Client().Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(e.Cluster.Client().Delete(ctx, namespace)) })
	return namespace.Name
}

// running creates pods and waits until they run.
func running(ctx context.Context, e *Env, pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		Expect(e.Cluster.Client().Create(ctx, pod)).To(Succeed())
	}
	for _, pod := range pods {
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(e.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		}).Should(Succeed())
	}
}

// writeFile writes a file of a node.
func writeFile(ctx context.Context, c *kind.Cluster, node, file string, content []byte) {
	GinkgoHelper()
	_, err := c.Engine().Pipe(ctx, bytes.NewReader(content),
		"exec", "--interactive", node, "sh", "-c", `mkdir --parents "$1" && cat >"$2"`, "sh", path.Dir(file), file)
	Expect(err).NotTo(HaveOccurred())
}
