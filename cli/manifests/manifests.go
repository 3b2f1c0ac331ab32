package manifests

import (
	"embed"
	"errors"
	"fmt"
)

// All is the name of the manifests with which one process runs all controllers. Those of a single one have its module's name.
const All = "all"

// ErrUnknown is returned for a name under which there are no manifests.
var ErrUnknown = errors.New("no such manifests")

//go:embed *.yaml
var built embed.FS

// Of are the objects under the name, as YAML documents. Images are ko's references to programs of this repository.
func Of(name string) (string, error) {
	text, err := built.ReadFile(name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return string(text), nil
}
