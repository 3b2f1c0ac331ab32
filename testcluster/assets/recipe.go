// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// recipeVersion changes the key when this package changes the content of the folder.
const recipeVersion = "2"

// stageFolders are the folders of kwok's stages for a simulated kubelet: nodes become and stay Ready, pods run, those
// of Jobs complete, and deleted ones end.
var stageFolders = []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"}

type recipe struct {
	source    string   // folder of module testcluster/kube
	programs  []string // package paths, from the tool lines
	version   string   // of Kubernetes, such as v1.36.3
	versions  versions
	key       string // name of the folder
	simulates bool
	// alwaysBuilt means that no download is used.
	alwaysBuilt bool
}

// versions are those of the programs, such as v1.36.3.
type versions struct{ kubernetes, etcd, kwok string }

// readRecipe returns the recipe for the wanted tools of the module. One module compiles shared packages once.
func readRecipe(ctx context.Context, source string, wanted func(tool string) bool) (recipe, error) {
	modPath := filepath.Join(source, "go.mod")
	mod, err := os.ReadFile(modPath)
	if err != nil {
		return recipe{}, fmt.Errorf("%w: %w", ErrNoSource, err)
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return recipe{}, fmt.Errorf("read the checksums of %s: %w", modPath, err)
	}
	file, err := modfile.Parse(modPath, mod, nil)
	if err != nil {
		return recipe{}, fmt.Errorf("parse: %w", err)
	}
	r := recipe{source: source}
	for _, tool := range file.Tool {
		if wanted(tool.Path) {
			r.programs = append(r.programs, tool.Path)
		}
	}
	for _, require := range file.Require {
		switch require.Mod.Path {
		case "k8s.io/kubernetes":
			r.version, r.versions.kubernetes = require.Mod.Version, require.Mod.Version
		case "go.etcd.io/etcd/server/v3":
			r.versions.etcd = require.Mod.Version
		case "sigs.k8s.io/kwok":
			r.versions.kwok = require.Mod.Version
			r.simulates = wanted("sigs.k8s.io/kwok/cmd/kwok")
		}
	}
	if len(r.programs) == 0 {
		return recipe{}, fmt.Errorf("%s has no tool lines, so there is nothing to build", modPath)
	}
	if !semver.IsValid(r.version) {
		return recipe{}, fmt.Errorf("%s does not require k8s.io/kubernetes at a version", modPath)
	}
	goVersion, err := goCommand(ctx, source, []string{"GOWORK=off"}, "env", "GOVERSION")
	if err != nil {
		return recipe{}, err
	}
	digest := sha256.New()
	for _, part := range []string{
		recipeVersion, string(mod), string(sum), strings.TrimSpace(goVersion), runtime.GOOS, runtime.GOARCH, strings.Join(stageFolders, " "), strings.Join(r.programs, " "),
	} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	r.key = r.version + "-" + hex.EncodeToString(digest.Sum(nil))[:16]
	return r, nil
}

// programName is the file name of a built program. etcd's main package is called server; envtest requires the name
// etcd.
func programName(pkg string) string {
	if strings.HasPrefix(pkg, "go.etcd.io/etcd/server/") {
		return "etcd"
	}
	if isSuite(pkg) {
		return path.Base(pkg) + ".test"
	}
	return path.Base(pkg)
}

// builtName is the go command's name: the last element of the path that is no major version.
func builtName(pkg string) string {
	if base := path.Base(pkg); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// names are the file names of the programs.
func (r recipe) names() []string {
	var names []string
	for _, pkg := range r.programs {
		names = append(names, programName(pkg))
	}
	return names
}

// without returns the recipe for the programs that are not in a map.
func (r recipe) without(there map[string]programOrigin) recipe {
	r.programs = slices.DeleteFunc(slices.Clone(r.programs), func(pkg string) bool { _, ok := there[programName(pkg)]; return ok })
	return r
}

// linkerFlags stamps the Kubernetes version, without which clients would get v0.0.0-master, and drops symbols to save
// 150 MB.
func linkerFlags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(semver.Canonical(version), "v"), ".", 3)
	const stamp = " -X k8s.io/component-base/version."
	return "-s -w" +
		stamp + "gitVersion=" + version +
		stamp + "gitMajor=" + parts[0] +
		stamp + "gitMinor=" + parts[1] +
		stamp + "gitTreeState=clean"
}

// ErrModuleUnavailable is returned when the module proxy does not have a module version.
var ErrModuleUnavailable = errors.New("module version unavailable")

var moduleFailure = regexp.MustCompile(`(?m)(?:^|\s)([A-Za-z0-9][\w.~/-]*\.[\w.~/-]+)@(v[\w.+-]+): (.+)$`)

// explain adds what to do to an error of the go command about a module version or checksum. Other errors are unchanged.
func explain(err error) error {
	if strings.Contains(err.Error(), "missing go.sum entry") {
		return fmt.Errorf("%w: the checksums do not fit the versions, run GOWORK=off go mod tidy in testcluster/kube (see its README.md): %w", ErrModuleUnavailable, err)
	}
	match := moduleFailure.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	return fmt.Errorf("%w: module %s at version %s: %s. Check that the version exists and that GOPROXY, GONOSUMDB and the network reach "+
		"a proxy that has it, or change the version in testcluster/kube/go.mod (see testcluster/kube/README.md)", ErrModuleUnavailable, match[1], match[2], match[3])
}
