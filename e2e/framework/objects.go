// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/scenario"
)

// releaseWord is replaced by the version of the cluster.
const releaseWord = "{release}"

// objectDocument is one object of a file.
type objectDocument struct {
	file string
	text []byte
}

// readObjects returns the objects of the YAML and JSON files of folders, without subfolders.
func readObjects(folders []string) ([]objectDocument, error) {
	var all []objectDocument
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, entry := range entries {
			if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
				continue
			}
			documents, err := readDocuments(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			all = append(all, documents...)
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s has no object in a YAML or JSON file", folder) //nolint:err113 // ErrOperators is added
		}
	}
	return all, nil
}

func readDocuments(file string) ([]objectDocument, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var documents []objectDocument
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		document := objectDocument{file: file, text: text}
		object, err := document.object(scenario.Release)
		switch {
		case err != nil:
			return nil, err
		case object == nil: // comments only
			continue
		case object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" || object.IsList():
			return nil, fmt.Errorf("%s: wanted objects with apiVersion, kind and metadata.name, and no List", file) //nolint:err113 // the same
		case object.GetKind() == "CustomResourceDefinition":
			return nil, fmt.Errorf("%s: CustomResourceDefinition %s belongs into a folder of --operator-crds", file, object.GetName()) //nolint:err113 // the same
		}
		documents = append(documents, document)
	}
}

// object returns the object for a version of the cluster; nil if the document has only comments.
func (d objectDocument) object(release string) (*unstructured.Unstructured, error) {
	var content map[string]any
	if err := yaml.Unmarshal(bytes.ReplaceAll(d.text, []byte(releaseWord), []byte(release)), &content); err != nil {
		return nil, fmt.Errorf("%s: %w", d.file, err)
	}
	if content == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// release returns the version of the cluster.
func (s *ScenarioCluster) release() string { return cmp.Or(s.Scenario.Release, scenario.Release) }

// applyObjects applies the objects for the operators, which others write on a cluster, with their status.
func (s *ScenarioCluster) applyObjects(ctx context.Context) error {
	for _, document := range s.operators.objects {
		object, err := document.object(s.release())
		if err != nil {
			return err
		}
		if namespace := object.GetNamespace(); namespace != "" {
			if err := s.Cluster.EnsureNamespace(ctx, namespace); err != nil {
				return err
			}
		}
		if err := applyWithStatus(ctx, s.Cluster.Client(), object); err != nil {
			return fmt.Errorf("%w: %s: apply %s %s: %w", ErrOperators, document.file, object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// applyWithStatus applies an object. A kind without the subresource has its status in the object.
func applyWithStatus(ctx context.Context, kube client.Client, object *unstructured.Unstructured) error {
	status, has := object.Object["status"]
	if err := kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(scenario.InstallerManager), client.ForceOwnership); err != nil {
		return err
	}
	if !has {
		return nil
	}
	only := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	only.SetGroupVersionKind(object.GroupVersionKind())
	only.SetNamespace(object.GetNamespace())
	only.SetName(object.GetName())
	err := kube.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(only), client.FieldOwner(scenario.InstallerManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) { // the subresource or the object
		return kube.Get(ctx, client.ObjectKeyFromObject(object), only)
	}
	return err
}
