// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// EnsureProgram returns the path of a program that is built from one Go file with the Kubernetes of testcluster/kube,
// which no other module may import. The file's folder has the name of the program. Like those of Ensure, the program
// is built once for each content of the file and versions. Progress may be nil.
func EnsureProgram(ctx context.Context, file string, progress io.Writer) (string, error) {
	module, err := ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	return ensureProgram(ctx, filepath.Join(module, "kube"), file, progress)
}

func ensureProgram(ctx context.Context, source, file string, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	r, err := readRecipe(ctx, source, ofControlPlane)
	if err != nil {
		return "", err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("find the source of a program: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the source of a program: %w", err)
	}
	name := filepath.Base(filepath.Dir(file))
	digest := sha256.Sum256(append([]byte(r.key+"\n"), text...))
	program := filepath.Join(cache, "programs", name+"-"+hex.EncodeToString(digest[:])[:16])
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	lock := flock.New(program + ".lock")
	if locked, err := lock.TryLockContext(ctx, lockRetry); err != nil || !locked {
		return "", fmt.Errorf("wait for the lock %s.lock: %w", program, errors.Join(err, ctx.Err()))
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	temp := program + ".building"
	if err := buildPrograms(ctx, r, temp, newStepProgress(progress, name), file); err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSuffix(filepath.Base(file), ".go"), err)
	}
	if err := os.Rename(temp, program); err != nil {
		return "", fmt.Errorf("put the built program in place: %w", err)
	}
	return program, nil
}
