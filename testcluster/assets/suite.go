// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// suite is the package of Kubernetes' end-to-end tests, the only tool line that is no command.
const suite = "k8s.io/kubernetes/test/e2e"

func isSuite(pkg string) bool { return pkg == suite }

// EnsureSuite returns the folder of e2e.test, agnhost and ginkgo, of the versions of tools/kubetests. They are
// always built from source, once.
func EnsureSuite(ctx context.Context, progress io.Writer) (Assets, error) {
	r, err := suiteRecipe(ctx)
	if err != nil {
		return Assets{}, err
	}
	return r.ensureCached(ctx, progress)
}

// SuiteKey returns the Kubernetes version of EnsureSuite, and its digest. It builds nothing.
func SuiteKey(ctx context.Context) (version, key string, err error) {
	r, err := suiteRecipe(ctx)
	return r.version, r.key, err
}

// SuiteFolder returns the folder of the module k8s.io/kubernetes in the module cache, with the files of its tests.
func SuiteFolder(ctx context.Context) (string, error) {
	source, err := suiteSource(ctx)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, source, []string{"GOWORK=off"}, "k8s.io/kubernetes")
}

func suiteRecipe(ctx context.Context) (recipe, error) {
	source, err := suiteSource(ctx)
	if err != nil {
		return recipe{}, err
	}
	r, err := readRecipe(ctx, source, func(string) bool { return true })
	if err != nil {
		return recipe{}, fmt.Errorf("read what Kubernetes' tests are built from: %w", err)
	}
	r.alwaysBuilt = true
	return r, nil
}

func suiteSource(ctx context.Context) (string, error) {
	module, err := ModuleDir(ctx)
	return filepath.Join(filepath.Dir(module), "tools", "kubetests"), err
}
