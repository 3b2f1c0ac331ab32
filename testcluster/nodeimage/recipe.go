// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/testcluster/assets"
)

//go:embed rootfs.sh
var rootfs string

const (
	// recipeVersion changes when this package changes the content of the image.
	recipeVersion = "1"
	kindModule    = "sigs.k8s.io/kind"
	kindest       = "kindest/node"
	own           = "sno/node"
)

func tools() []string { return []string{"coredns", "crictl", "crio"} }

type recipe struct {
	version string
	key     string
	from    string
	folder  string
}

// pulled and built are the two possible names of the image.
func (r recipe) pulled() string { return r.from + ":" + r.version }
func (r recipe) built() string  { return own + ":" + r.version + "-" + r.key }

func (r recipe) archive() string { return filepath.Join(r.folder, r.version+"-"+r.key+".tar") }

func readRecipe(ctx context.Context) (recipe, error) {
	version, programs, err := assets.NodeKey(ctx)
	if err != nil {
		return recipe{}, fmt.Errorf("read what a node is made of: %w", err)
	}
	module, err := assets.ModuleDir(ctx)
	if err != nil {
		return recipe{}, err
	}
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return recipe{}, fmt.Errorf("read the version of kind: %w", err)
	}
	kind, err := required(text, kindModule)
	if err != nil {
		return recipe{}, err
	}
	parts := []string{programs, kind, rootfs}
	for _, tool := range tools() {
		for _, file := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(module), "tools", tool, file))
			if err != nil {
				return recipe{}, fmt.Errorf("read what a node is made of: %w", err)
			}
			parts = append(parts, string(text))
		}
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return recipe{}, err
	}
	return recipe{version: version, key: assets.Digest(append(parts, recipeVersion, runtime.GOARCH)...)[:12], from: kindest, folder: filepath.Join(filepath.Dir(cache), "nodeimage")}, nil
}

func required(text []byte, module string) (string, error) {
	file, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", module, err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%w: go.mod does not require %s", ErrImage, module)
}
