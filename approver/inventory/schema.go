package inventory

import (
	_ "embed" // the schema
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON schema (draft 7) of the format, for editors and for whoever writes the file. Load knows more than a schema can
// say: what two nodes have in common, and which addresses are those of one host.
func Schema() []byte { return slices.Clone(schema) }
