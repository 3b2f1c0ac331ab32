// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/topology/workload"
)

// DeployAll deploys all controllers and waits until they run.
func (e *Env) DeployAll(ctx context.Context) {
	GinkgoHelper()
	for _, module := range framework.AllModules() {
		e.apply(ctx, module, e.Image(module))
	}
	for _, module := range framework.AllModules() {
		e.rolled(ctx, module.Account())
	}
}

// Image returns the image of a module's controller, which is on all nodes.
func (e *Env) Image(module framework.Module) string { return e.images[module.Controller()] }

// apply applies a module's config/default with an image in place of ko's.
func (e *Env) apply(ctx context.Context, module framework.Module, image string) {
	GinkgoHelper()
	Expect(e.Prepare(ctx, module)).To(Succeed())
	root := suite.Must(programs.Root(ctx))
	for _, object := range suite.Must(framework.RenderConfig(filepath.Join(root, string(module), "config", "default"))) {
		if object.GetKind() == "Deployment" {
			object = withImage(object, image)
		}
		Expect(framework.Apply(ctx, e.Cluster.Client(), object)).To(Succeed())
	}
}

// placeholder is the image of ko in a manifest.
var placeholder = regexp.MustCompile(`ko://[^"]*`)

// withImage returns the object with an image instead of ko's.
func withImage(object *unstructured.Unstructured, image string) *unstructured.Unstructured {
	GinkgoHelper()
	text := suite.Must(object.MarshalJSON())
	Expect(string(text)).To(ContainSubstring("ko://"), "the manifest of %s", object.GetName())
	with := &unstructured.Unstructured{}
	Expect(with.UnmarshalJSON(placeholder.ReplaceAllLiteral(text, []byte(image)))).To(Succeed())
	return with
}

// rolled waits until a Deployment of a controller is rolled out.
func (e *Env) rolled(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, e.Cluster.Clientset().AppsV1().Deployments(framework.SystemNamespace).Get).WithArguments(name, metav1.GetOptions{}).
		WithTimeout(settleTimeout).WithPolling(poll).Should(Satisfy(workload.RolledOut), name)
}
