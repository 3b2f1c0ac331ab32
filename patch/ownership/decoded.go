package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// digest is a SHA-256 of what was decoded. It, and not the object's name and version, is what is looked up: whoever changes an object in memory gets
// the answer for what is there.
type digest = [sha256.Size]byte

// recently is what was decoded last, by what it was decoded from. Every question about an object needs its managedFields, a look asks dozens of questions about the
// same few objects, and decoding takes a hundred times as long as the digest.
type recently[T any] struct {
	values *lru.Cache
}

// How many are kept: the modules read a dozen objects, each with a handful of managers, and a set takes some ten kilobytes.
var (
	decodedSets = recently[*fieldpath.Set]{lru.New(64)}
	readFields  = recently[managedFields]{lru.New(24)}
)

// get returns what was made for the digest before, or makes it. What cannot be made is not kept.
func (r recently[T]) get(of digest, make func() (T, error)) (T, error) {
	if known, ok := r.values.Get(of); ok {
		return known.(T), nil //nolint:forcetypeassert // nothing else is put there
	}
	made, err := make()
	if err == nil {
		r.values.Add(of, made)
	}
	return made, err
}

// keyOf is the digest of who owns what.
func keyOf(entries []metav1.ManagedFieldsEntry) (digest, error) {
	hash := sha256.New()
	part := func(b []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		hash.Write(b)
	}
	for _, entry := range entries {
		part([]byte(entry.Manager))
		var raw []byte
		if entry.FieldsV1 != nil {
			var err error
			if raw, err = entry.FieldsV1.MarshalJSON(); err != nil {
				return digest{}, fmt.Errorf("%w: manager %q: %w", ErrManagedFields, entry.Manager, err)
			}
		}
		part(raw)
	}
	return digest(hash.Sum(nil)), nil
}
