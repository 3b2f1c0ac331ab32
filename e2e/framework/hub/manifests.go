// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/template"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
)

// values are what OCM's operators and its chart give to their manifests, which are templates.
var values = map[string]any{
	"ClusterManagerName": "cluster-manager", "ClusterManagerNamespace": hubNamespace, "Labels": map[string]string{},
	// Empty means an annotation that only the operator understands.
	"ManagedClusterIdentityCreatorRole": "none",
	"ClusterImporterEnabled":            false, "ClusterProfileEnabled": false, "GRPCAuthEnabled": false, "AddonAPIServiceCABundle": "",
	"KlusterletName": "klusterlet", "KlusterletNamespace": agentNamespace, "AgentNamespace": agentNamespace,
	"RegistrationServiceAccount": agentAccount, "WorkServiceAccount": agentAccount,
	"ManagedClusterRoleArn": "", "RegistrationDriver": map[string]string{"AuthType": ""},
	"Values":  map[string]bool{"createBootstrapSA": true, "createBootstrapToken": false},
	"Release": map[string]string{"Namespace": Namespace},
}

// apply makes namespaces and applies manifests of OCM's module to a cluster, by patterns of filepath.Glob. Kinds come
// first, and are served when it returns.
func (h *Hub) apply(ctx context.Context, c *embedded.Cluster, namespaces []string, patterns ...string) error {
	var objects []*unstructured.Unstructured
	var definitions []byte
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(h.source, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no file of Open Cluster Management matches %s: %w", pattern, errors.Join(err, os.ErrNotExist))
		}
		for _, file := range files {
			its, err := render(file)
			if err != nil {
				return fmt.Errorf("render %s: %w", file, err)
			}
			for _, object := range its {
				if object.GetKind() != "CustomResourceDefinition" {
					objects = append(objects, object)
					continue
				}
				text, err := withoutConversion(object)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				definitions = append(append(definitions, "---\n"...), text...)
			}
		}
	}
	file := filepath.Join(c.Dir(), "open-cluster-management.yaml")
	if err := os.WriteFile(file, definitions, 0o600); err != nil {
		return fmt.Errorf("write the kinds of Open Cluster Management: %w", err)
	}
	if err := c.InstallCRDs(ctx, nil, []string{file}); err != nil {
		return err
	}
	for _, namespace := range namespaces {
		if err := c.EnsureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := framework.Apply(ctx, c.Client(), object); err != nil {
			return err
		}
	}
	return nil
}

// render returns the objects of a manifest.
func render(file string) ([]*unstructured.Unstructured, error) {
	manifest, err := template.New(filepath.Base(file)).Option("missingkey=error").ParseFiles(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := manifest.Execute(&text, values); err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLOrJSONDecoder(&text, 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// withoutConversion returns a CustomResourceDefinition, with the stored version only if a webhook would convert others.
func withoutConversion(object *unstructured.Unstructured) ([]byte, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	if crd.Spec.Conversion != nil {
		crd.Spec.Conversion = nil
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return !version.Storage })
	}
	return yaml.Marshal(crd)
}
