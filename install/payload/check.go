// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/manifests"
)

var (
	// ErrMissing is in the error of an input or an output that is missing or empty.
	ErrMissing = errors.New("missing or empty")
	// ErrDifferent is in the error of an object or a file that two sources have with different contents.
	ErrDifferent = errors.New("set differently")
)

// checkInputs checks the files whose absence no render reports.
func checkInputs(assets fs.FS) error {
	var errs []error
	needed := []string{"auth/kubeconfig", "auth/kubeconfig-loopback", "auth/kubeconfig-kubelet"}
	for _, name := range keys {
		needed = append(needed, tlsDir+"/"+name)
	}
	for _, name := range needed {
		content, err := fs.ReadFile(assets, name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(content)) == 0 {
			err = fmt.Errorf("%s: %w", name, ErrMissing)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkOutput checks that a render has written what it must, and no Secret or ConfigMap without a value: that is what a
// render makes of a missing file.
func checkOutput(output fs.FS, must []string) error {
	var errs []error
	for _, name := range must {
		info, err := fs.Stat(output, name)
		empty := err == nil && info.Size() == 0
		if err == nil && info.IsDir() {
			entries, err := fs.ReadDir(output, name)
			empty = err == nil && len(entries) == 0
		}
		if errors.Is(err, fs.ErrNotExist) || empty {
			err = fmt.Errorf("%s: %w", name, ErrMissing)
		}
		errs = append(errs, err)
	}
	err := eachManifest(output, func(name string, o unstructured.Unstructured) {
		if o.GetAPIVersion() != "v1" || o.GetKind() != "Secret" && o.GetKind() != "ConfigMap" {
			return
		}
		for _, field := range []string{"data", "stringData", "binaryData"} {
			data, _, _ := unstructured.NestedMap(o.Object, field)
			for _, key := range slices.Sorted(maps.Keys(data)) {
				if value := data[key]; value == nil || value == "" {
					errs = append(errs, fmt.Errorf("%s: %s of %s %s/%s: %w: a file of tls was not found", name, key, o.GetKind(), o.GetNamespace(), o.GetName(), ErrMissing))
				}
			}
		}
	})
	return errors.Join(append(errs, err)...)
}

// objects are the objects of the manifests by kind and name, each with the file that it is from.
type objects map[string]source

type source struct {
	name   string
	object map[string]any
}

// add adds the objects of a file. One that another file sets differently is an error: renders refuse that, and the API
// server would get one of them by chance.
func (all objects) add(name string, content []byte) error {
	found, err := objectsOf(name, content)
	errs := []error{err}
	for _, o := range found {
		key := fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
		if first, is := all[key]; is && first.name != name && !reflect.DeepEqual(first.object, o.Object) {
			errs = append(errs, fmt.Errorf("%s: %w by %s and %s", key, ErrDifferent, first.name, name))
		}
		all[key] = source{name, o.Object}
	}
	return errors.Join(errs...)
}

// eachManifest calls a function for each object in the manifests of a folder and those below it.
func eachManifest(tree fs.FS, each func(name string, o unstructured.Unstructured)) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		found, err := objectsOf(name, content)
		for _, o := range found {
			each(name, o)
		}
		return err
	})
}

// objectsOf returns the objects of a file of YAML or JSON; others have none.
func objectsOf(name string, content []byte) ([]unstructured.Unstructured, error) {
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
		return nil, nil
	}
	return manifests.Objects(files.File{Path: name, Content: content}) //nolint:wrapcheck // it names the file
}

// listed returns the regular files of a folder, without those below it; none if it does not exist.
func listed(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the folder
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, filepath.Join(folder, entry.Name()))
		}
	}
	return names, nil
}
