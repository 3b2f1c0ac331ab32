// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

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
			Expect(setImage(object, image)).To(Succeed())
		}
		Expect(framework.Apply(ctx, e.Cluster.Client(), object)).To(Succeed())
	}
}

var errPlaceholder = errors.New("no container with an image of ko")

// setImage sets the image of the container with ko's placeholder.
func setImage(deployment *unstructured.Unstructured, image string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	for _, each := range containers {
		container, ok := each.(map[string]any)
		if name, _ := container["image"].(string); !ok || !strings.HasPrefix(name, "ko://") {
			continue
		}
		container["image"] = image
		return unstructured.SetNestedSlice(deployment.Object, containers, path...) //nolint:wrapcheck // complete
	}
	return errPlaceholder
}

// rolled waits until a Deployment of a controller is rolled out.
func (e *Env) rolled(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, e.Cluster.Clientset().AppsV1().Deployments(framework.SystemNamespace).Get).WithArguments(name, metav1.GetOptions{}).
		WithTimeout(settleTimeout).WithPolling(poll).Should(Satisfy(workload.RolledOut), name)
}
