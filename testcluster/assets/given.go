// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// given returns the programs of the folder in KUBEBUILDER_ASSETS if it has all that the recipe needs, and reports in a
// line why not. The folder of envtest has no controller-manager and no scheduler.
func given(ctx context.Context, r recipe, dir, cache string, progress io.Writer) (Assets, bool, error) {
	if dir == "" {
		return Assets{}, false, nil
	}
	if !isDir(dir) {
		fmt.Fprintf(progress, "%s is not used: %s is not a folder\n", GivenEnv, dir)
		return Assets{}, false, nil
	}
	// The link <cache>/current may change while a cluster runs.
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return Assets{}, false, fmt.Errorf("find the folder of %s: %w", GivenEnv, err)
	}
	if resolved, err := filepath.EvalSymlinks(cache); err == nil {
		cache = resolved
	}
	missing := r.missingIn(dir)
	if len(missing) > 0 {
		if len(missing) < len(r.programs) {
			fmt.Fprintf(progress, "%s is not used: %s has no %s\n", GivenEnv, dir, strings.Join(missing, ", "))
		}
		return Assets{}, false, nil
	}
	a := Assets{Dir: dir}
	instead := Given
	if match := keyPattern.FindStringSubmatch(filepath.Base(dir)); match != nil && filepath.Dir(dir) == cache {
		instead, a.Version = Built, match[1]
	} else if a.Version, err = versionOf(ctx, filepath.Join(dir, r.versioned())); err != nil {
		return Assets{}, false, err
	}
	if a.Origin, err = readOrigin(dir, instead); err != nil {
		return Assets{}, false, err
	}
	if a.Version != r.version {
		fmt.Fprintf(progress, "%s has Kubernetes %s, testcluster/kube has %s\n", GivenEnv, a.Version, r.version)
	}
	return a, true, nil
}

// versioned returns the name of a program that prints the version of Kubernetes.
func (r recipe) versioned() string {
	names := r.names()
	return names[max(0, slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "kube-") }))]
}

// missingIn returns the names of what a folder lacks.
func (r recipe) missingIn(dir string) []string {
	names := r.names()
	if r.simulates {
		names = append(names, stagesDir)
	}
	var missing []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// keyPattern matches the names of folders in the cache.
var keyPattern = regexp.MustCompile(`^(v[0-9][0-9A-Za-z.+-]*)-[0-9a-f]{16}(?:` + downloadedSuffix + `)?$`)

var versionPattern = regexp.MustCompile(`\bv[0-9]+\.[0-9]+\.[0-9]+\S*`)

// versionOf returns what a program of Kubernetes prints for --version.
func versionOf(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", program, err)
	}
	version := versionPattern.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("%s --version prints no version", program)
	}
	return version, nil
}
