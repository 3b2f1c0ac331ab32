// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// atomic are lists and maps that belong to one owner as a whole, so further entries are a difference.
var atomic = []string{"tolerations", "nodeSelector"}

// upToDate reports whether the live object has all applied fields. Defaults and fields of other owners do not count;
// the annotation of the applied fields reports those that were removed since the last apply.
func upToDate(live *unstructured.Unstructured, desired fields) bool {
	return live != nil && contains(live.Object, desired)
}

func contains(live, desired any) bool {
	switch desired := desired.(type) {
	case fields:
		have, ok := live.(fields)
		if !ok {
			return len(desired) == 0 && live == nil
		}
		for key, value := range desired {
			if slices.Contains(atomic, key) {
				if !reflect.DeepEqual(have[key], value) {
					return false
				}
			} else if !contains(have[key], value) {
				return false
			}
		}
		return true
	case list:
		have, ok := live.(list)
		if !ok {
			return len(desired) == 0 && live == nil
		}
		for _, value := range desired {
			if !slices.ContainsFunc(have, func(one any) bool { return contains(one, value) }) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, desired)
}
