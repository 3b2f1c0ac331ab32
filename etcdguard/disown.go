package etcdguard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

// Released is the field manager of what this module gave back where there is no cluster-version-operator to own it. It is taken
// again freely.
const Released = "sno.solonode.github.io/etcdguard-released"

// Disowned is the managedFields of an object after this module gave it to another manager: what it had applied is as if the
// other had updated it. No value is touched. Writing it is a JSON patch of /metadata/managedFields that tests the resourceVersion.
//
// Applying nothing would not do: it removes what nobody else owns. Nor would leaving the fields without an owner: the API server
// keeps no account of an object of which nobody owns anything, and takes all of it for a stranger's on the next apply.
//
// The argument is not changed. The error is an ownership.ErrManagedFields.
func Disowned(entries []metav1.ManagedFieldsEntry, to string) ([]metav1.ManagedFieldsEntry, error) {
	var out, ours []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager == FieldOwner && entry.Subresource == "" {
			ours = append(ours, entry)
			continue
		}
		out = append(out, *entry.DeepCopy())
	}
	for _, entry := range ours {
		mine, err := decode(entry)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(out, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == to && other.Operation == metav1.ManagedFieldsOperationUpdate &&
				other.APIVersion == entry.APIVersion && other.Subresource == ""
		})
		if at < 0 {
			entry = *entry.DeepCopy()
			entry.Manager, entry.Operation = to, metav1.ManagedFieldsOperationUpdate
			out = append(out, entry)
			continue
		}
		theirs, err := decode(out[at])
		if err != nil {
			return nil, err
		}
		if out[at].FieldsV1, err = encode(theirs.Union(mine)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decode(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	raw, err := entry.FieldsV1.MarshalJSON()
	if err == nil {
		err = set.FromJSON(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: manager %q: %w", ownership.ErrManagedFields, entry.Manager, err)
	}
	return set, nil
}

func encode(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	fields := &metav1.FieldsV1{}
	if err == nil {
		err = json.Unmarshal(raw, fields)
	}
	if err != nil {
		return nil, fmt.Errorf("writing metadata.managedFields: %w", err)
	}
	return fields, nil
}
