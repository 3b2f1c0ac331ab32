// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/solonode/sno/render/files"
)

var (
	// ErrManifest is in the error of a file that is not a manifest.
	ErrManifest = errors.New("not a manifest of Kubernetes objects")
	// ErrConflict is in the error of an object in two files, even with the same content.
	ErrConflict = errors.New("defined by two manifests")
)

// ReadUserManifests reads the user's manifests in a folder; name is the folder's name in errors. Hidden files and
// Markdown are skipped. Another file that does not end in .yaml, .yml or .json is an error, because it would not be
// applied.
func ReadUserManifests(name string, folder fs.FS) (list []files.File, skipped []string, err error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for _, entry := range entries {
		at := path.Join(name, entry.Name())
		if !entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || path.Ext(entry.Name()) == ".md" || entry.Name() == "README") {
			skipped = append(skipped, at+": skipped: not a manifest")
			continue
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(entry.Name())) {
			errs = append(errs, fmt.Errorf("%s: %w: only files that end in .yaml, .yml or .json are applied", at, ErrManifest))
			continue
		}
		content, err := fs.ReadFile(folder, entry.Name())
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		list = append(list, files.File{Path: at, Mode: 0o600, Content: content})
	}
	return list, skipped, errors.Join(errs...)
}

// OVNKubernetes returns the settings of OVN-Kubernetes in a manifest of kind Network of operator.openshift.io, nil if
// there is none.
func OVNKubernetes(list []files.File) (*operatorv1.OVNKubernetesConfig, error) {
	for _, f := range list {
		found, err := objectsOf(f)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if o.GroupVersionKind() != operatorv1.GroupVersion.WithKind("Network") {
				continue
			}
			var network operatorv1.Network
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &network); err != nil {
				return nil, fmt.Errorf("%s: %w: %w", f.Path, ErrManifest, err)
			}
			return network.Spec.DefaultNetwork.OVNKubernetesConfig, nil
		}
	}
	return nil, nil //nolint:nilnil // most users have no such manifest
}

// Merge returns the files of all lists. An object in two files is an error that names both.
func Merge(lists ...[]files.File) ([]files.File, error) {
	sources := map[string]string{}
	var merged []files.File
	var errs []error
	for _, list := range lists {
		for _, f := range list {
			found, err := objectsOf(f)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for _, o := range found {
				key := fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
				if other, taken := sources[key]; taken {
					errs = append(errs, fmt.Errorf("%s: %w: %s and %s; remove it from your manifest", key, ErrConflict, other, f.Path))
				}
				sources[key] = f.Path
			}
			f.Path = strings.ReplaceAll(f.Path, "/", "_")
			merged = append(merged, f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(merged, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return merged, nil
}

func objectsOf(f files.File) ([]unstructured.Unstructured, error) {
	found, err := Objects(f)
	if err != nil {
		return nil, err
	}
	for i, o := range found {
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("%s: %w: document %d needs apiVersion, kind and metadata.name; replace a List by its items", f.Path, ErrManifest, i+1)
		}
	}
	return found, nil
}

// Objects returns the objects in a file of YAML or JSON documents, without those that are empty. ErrManifest is in the
// error of another file; what was read before is returned with it.
func Objects(f files.File) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Content), 4096); ; {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return found, fmt.Errorf("%s: %w: %w", f.Path, ErrManifest, err)
		case len(o.Object) > 0:
			found = append(found, o)
		}
	}
}
