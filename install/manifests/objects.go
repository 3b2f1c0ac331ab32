// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/solonode/sno/render/files"
)

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
