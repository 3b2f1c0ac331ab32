// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/topology/workload"
)

// DeployAll deploys all controllers and waits until they run.
func (e *Env) DeployAll(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, module := range framework.AllModules() {
		group.Go(func() error { return e.Deploy(groupCtx, module, e.Image(module)) })
	}
	return group.Wait() //nolint:wrapcheck // describe the fault
}

// Image returns the image of a module's controller, which is on all nodes.
func (e *Env) Image(module framework.Module) string { return e.images[module.Controller()] }

// Deploy applies a module's config/default with an image in place of ko's and further arguments, and returns when it
// runs. Repeated, it is a rollout.
func (e *Env) Deploy(ctx context.Context, module framework.Module, image string, args ...string) error {
	if err := e.Prepare(ctx, module); err != nil {
		return err
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	objects, err := framework.RenderConfig(filepath.Join(root, string(module), "config", "default"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			if err := setImage(object, image, args); err != nil {
				return fmt.Errorf("deploy %s: %w", module, err)
			}
		}
		if err := framework.Apply(ctx, e.Cluster.Client(), object); err != nil {
			return err
		}
	}
	return e.rolled(ctx, module.Account())
}

var errPlaceholder = errors.New("no container with an image of ko")

// setImage sets the image and adds arguments of the container with ko's placeholder.
func setImage(deployment *unstructured.Unstructured, image string, args []string) error {
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
		given, _ := container["args"].([]any)
		for _, arg := range args {
			given = append(given, arg)
		}
		container["args"] = given
		return unstructured.SetNestedSlice(deployment.Object, containers, path...) //nolint:wrapcheck // complete
	}
	return errPlaceholder
}

func (e *Env) rolled(ctx context.Context, name string) error {
	return until(ctx, name+" runs", func(ctx context.Context) error {
		live, err := e.Cluster.Clientset().AppsV1().Deployments(framework.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !workload.RolledOut(live) {
			err = fmt.Errorf("%w: %+v", errMoves, live.Status)
		}
		return err
	})
}
