// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CacheEnv names the environment variable with the cache folder.
const CacheEnv = "SNO_CACHE"

const modulePath = "github.com/solonode/sno/testcluster"

// ErrNoSource is returned when the folder of module testcluster, and with it testcluster/kube, is not found.
var ErrNoSource = errors.New("the source folder of " + modulePath + " was not found")

// CacheDir returns the folder of all builds, without creating it: $SNO_CACHE/kube, or sno/kube in the user's cache
// folder.
func CacheDir() (string, error) {
	base := os.Getenv(CacheEnv)
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder: set %s or HOME: %w", CacheEnv, err)
		}
		base = filepath.Join(user, "sno")
	}
	abs, err := filepath.Abs(base)
	if err != nil {
		return "", fmt.Errorf("cache folder %s: %w", base, err)
	}
	return filepath.Join(abs, "kube"), nil
}

// ModuleDir returns the folder of module testcluster: that of the clone with the working folder, or the go command's.
func ModuleDir(ctx context.Context) (string, error) {
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if module := filepath.Join(dir, "testcluster"); isModuleDir(module) {
				return module, nil
			}
		}
	}
	out, err := goCommand(ctx, "", nil, "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", fmt.Errorf("%w: run from a clone of the repository: %w", ErrNoSource, err)
	}
	if dir := strings.TrimSpace(out); isModuleDir(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("%w: run from a clone of the repository", ErrNoSource)
}

func kubeSource(ctx context.Context) (string, error) {
	module, err := ModuleDir(ctx)
	return filepath.Join(module, "kube"), err
}

// SuiteFolder returns the folder of the module k8s.io/kubernetes in the module cache, with the files of its tests.
func SuiteFolder(ctx context.Context) (string, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, source, nil, "k8s.io/kubernetes")
}

// OCMFolder returns the folder of the module open-cluster-management.io/ocm in the module cache, with its manifests.
func OCMFolder(ctx context.Context) (string, error) {
	source, err := ocmSource(ctx)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, source, []string{"GOWORK=off"}, ocm)
}

func ocmSource(ctx context.Context) (string, error) {
	module, err := ModuleDir(ctx)
	return filepath.Join(module, "ocm"), err
}

func isModuleDir(dir string) bool {
	if dir == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "kube", "go.mod"))
	return err == nil && info.Mode().IsRegular()
}

func command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	return cmd
}

// goCommand runs the go command and returns its standard output. An error contains its standard error.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := command(ctx, dir, env, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// ModuleFolder returns the folder in the module cache of a module that testcluster requires, such as
// github.com/openshift/api, downloading it if needed.
func ModuleFolder(ctx context.Context, module string) (string, error) {
	dir, err := ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, dir, nil, module)
}

func moduleFolder(ctx context.Context, dir string, env []string, module string) (string, error) {
	list := func() (string, error) {
		out, err := goCommand(ctx, dir, env, "list", "-m", "-f", "{{.Dir}}", module)
		return strings.TrimSpace(out), err
	}
	folder, err := list()
	if err != nil {
		return "", explain(err, dir)
	}
	if folder != "" {
		return folder, nil
	}
	if _, err := goCommand(ctx, dir, env, "mod", "download", module); err != nil {
		return "", explain(err, dir)
	}
	if folder, err = list(); err != nil {
		return "", explain(err, dir)
	}
	if folder == "" {
		return "", fmt.Errorf("module %s has no folder in the module cache", module)
	}
	return folder, nil
}
