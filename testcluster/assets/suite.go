// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"fmt"
	"io"
)

// suite is the package of Kubernetes' end-to-end tests, the only tool line that is no command.
const suite = "k8s.io/kubernetes/test/e2e"

func isSuite(pkg string) bool { return pkg == suite }

// ofSuite are the tools of testcluster/kube for these tests.
func ofSuite(tool string) bool {
	return isSuite(tool) || tool == "k8s.io/kubernetes/test/images/agnhost" || tool == "github.com/onsi/ginkgo/v2/ginkgo"
}

// EnsureSuite returns the folder of e2e.test, agnhost and ginkgo, of the versions of testcluster/kube. They are
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
	source, err := kubeSource(ctx)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, source, nil, "k8s.io/kubernetes")
}

func suiteRecipe(ctx context.Context) (recipe, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return recipe{}, err
	}
	r, err := readRecipe(ctx, source, ofSuite)
	if err != nil {
		return recipe{}, fmt.Errorf("read what Kubernetes' tests are built from: %w", err)
	}
	r.alwaysBuilt = true
	return r, nil
}
