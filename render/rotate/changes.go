// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/store"
)

// Changes returns new and changed objects as "KIND.GROUP NAMESPACE/NAME", sorted, ignoring fields that a server owns.
func Changes(earlier, later []runtime.Object) ([]string, error) {
	before, err := contents(earlier)
	if err != nil {
		return nil, fmt.Errorf("compare with the earlier objects: %w", err)
	}
	after, err := contents(later)
	if err != nil {
		return nil, fmt.Errorf("compare with the later objects: %w", err)
	}
	var changed []string
	for name, content := range after {
		if old, existed := before[name]; !existed || !bytes.Equal(old, content) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}

func contents(objects []runtime.Object) (map[string][]byte, error) {
	manifests, err := export.Manifests(objects)
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, m := range manifests {
		name := store.Object{Namespace: m.Object.GetNamespace(), Name: m.Object.GetName()}
		found[m.Object.GroupVersionKind().GroupKind().String()+" "+name.String()] = m.Content
	}
	return found, nil
}
