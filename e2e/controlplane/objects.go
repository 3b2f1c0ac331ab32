// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/assets"
)

type object = *unstructured.Unstructured

func decode(text []byte) ([]object, error) {
	var objects []object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err //nolint:wrapcheck // the caller wraps it
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

// create creates objects in their order. Existing ones stay as they are.
func (n *Node) create(ctx context.Context, objects []object) error {
	for _, o := range objects {
		err := until(ctx, nameOf(o)+" is created", func(ctx context.Context) error {
			err := n.client.Create(ctx, o.DeepCopy())
			// A kind can be unknown for a moment after its definition was created. Other errors are final.
			if err == nil || !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				return final{err}
			}
			return err
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s: %w", nameOf(o), err)
		}
	}
	return nil
}

// applyStatus applies the status of objects in their order, as `kubectl apply --server-side --subresource=status` does.
func (n *Node) applyStatus(ctx context.Context, objects []object) error {
	for _, o := range objects {
		if err := n.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("sno-render")); err != nil {
			return fmt.Errorf("write the status of %s: %w", nameOf(o), err)
		}
	}
	return nil
}

func nameOf(o object) string {
	return fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
}

// openShift is the suffix of groups that a plain API server does not serve.
const openShift = "openshift.io"

// definitionsFor returns the CustomResourceDefinitions that objects need, which a release contains, and sno-render does
// not.
func definitionsFor(ctx context.Context, objects []object) ([]object, error) {
	folder, err := assets.ModuleFolder(ctx, "github.com/openshift/api")
	if err != nil {
		return nil, fmt.Errorf("find the CustomResourceDefinitions: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "payload-manifests", "crds", "*.crd.yaml"))
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	var missing []string
	for _, o := range objects {
		kind := o.GroupVersionKind().GroupKind().String()
		if strings.HasSuffix(o.GroupVersionKind().Group, openShift) && !slices.Contains(missing, kind) {
			missing = append(missing, kind)
		}
	}
	var found []object
	for _, file := range files {
		if !ofRelease(filepath.Base(file)) || len(missing) == 0 {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the CustomResourceDefinitions: %w", err)
		}
		at := slices.Index(missing, defines(text))
		if at < 0 {
			continue
		}
		crds, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		found, missing = append(found, crds...), slices.Delete(missing, at, at+1)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: no CustomResourceDefinition of %s", errRendered, strings.Join(missing, ", "))
	}
	return found, nil
}

// ofRelease reports whether a file is for a cluster with its own control plane and without preview features.
func ofRelease(file string) bool {
	for _, other := range []string{"Hypershift", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "OKD"} {
		if strings.Contains(file, "-"+other) {
			return false
		}
	}
	return true
}

var (
	groupLine = regexp.MustCompile(`(?m)^  group: (\S+)$`)
	kindLine  = regexp.MustCompile(`(?m)^    kind: (\S+)$`)
)

// defines returns the kind and group of a definition, without parsing its long schema.
func defines(text []byte) string {
	group, kind := groupLine.FindSubmatch(text), kindLine.FindSubmatch(text)
	if group == nil || kind == nil {
		return ""
	}
	return string(kind[1]) + "." + string(group[1])
}
