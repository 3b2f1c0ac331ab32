// SPDX-License-Identifier: Apache-2.0

package patchtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	assetsEnv = "KUBEBUILDER_ASSETS"
	cacheEnv  = "SNO_CACHE"
)

// ErrNoBinaries is returned if there is no API server to start. Tests fail on it, they are not skipped.
var ErrNoBinaries = errors.New("no kube-apiserver and etcd to test against; run `make kube-assets` at the root of the repository")

// Binaries returns the folder with kube-apiserver and etcd: $KUBEBUILDER_ASSETS, or that of `make kube-assets`.
func Binaries() (string, error) {
	folder := os.Getenv(assetsEnv)
	if folder == "" {
		cache := os.Getenv(cacheEnv)
		if cache == "" {
			user, err := os.UserCacheDir()
			if err != nil {
				return "", fmt.Errorf("%w: set %s or HOME: %w", ErrNoBinaries, cacheEnv, err)
			}
			cache = filepath.Join(user, "sno")
		}
		folder = filepath.Join(cache, "kube", "current")
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("%w: %s is not in %s", ErrNoBinaries, name, folder)
		}
	}
	return folder, nil
}
