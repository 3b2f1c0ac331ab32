// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// GivenEnv names a folder with programs, as envtest has it.
const GivenEnv = "KUBEBUILDER_ASSETS"

const (
	// Built is the origin of programs that this package has built.
	Built = "built from source"
	// Given is the origin of programs in a folder of which nothing else is known.
	Given = "given folder"
)

// Assets is a complete folder of programs and kwok stages.
type Assets struct {
	// Dir is the folder. It is a valid KUBEBUILDER_ASSETS.
	Dir     string
	Version string
	// Origin is where the programs are from, in one line: Built, Given, or hosts and SHA-256.
	Origin string
}

// Program returns the path of a program: etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kwok, or one
// of EnsureNode.
func (a Assets) Program(name string) string { return filepath.Join(a.Dir, name) }

// Stages returns the paths of kwok's stages, in a stable order.
func (a Assets) Stages() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(a.Dir, stagesDir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list simulation stages: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no simulation stages in %s: delete the folder, it will be built again", a.Dir)
	}
	return files, nil
}

var digestPattern = regexp.MustCompile(` sha256 [0-9a-f]+`)

// Summary returns the version and the origin without digests, such as "Kubernetes v1.35.2, downloaded from dl.k8s.io:
// kube-apiserver".
func (a Assets) Summary() string {
	return "Kubernetes " + a.Version + ", " + digestPattern.ReplaceAllString(a.Origin, "")
}

const (
	stagesDir = "stages"
	// originFile is in folders with downloaded programs.
	originFile     = "origin"
	releasedSuffix = "-released"
	// lockRetry is the interval at which a process retries the lock of another that fills the cache.
	lockRetry = 200 * time.Millisecond
)

// Ensure returns the folder of programs for the versions of testcluster/kube: that of KUBEBUILDER_ASSETS if it is
// complete, that in the cache, or a new one, downloaded or built (SNO_ASSETS). One process at a time fills the cache.
// Progress may be nil. Errors: ErrNoSource, ErrSetting, ErrNotDownloaded, ErrModuleUnavailable, and the compiler's.
func Ensure(ctx context.Context, progress io.Writer) (Assets, error) {
	return ensureSet(ctx, ofControlPlane, nil, progress)
}

// EnsureNode returns the folder of kubeadm, kubectl, kubelet and kube-proxy, of the versions of testcluster/kube. They
// are from the same places as those of Ensure, in a separate folder of the cache.
func EnsureNode(ctx context.Context, progress io.Writer) (Assets, error) {
	return ensureSet(ctx, ofNode, nil, progress)
}

// EnsureSuite returns the folder of e2e.test, agnhost and ginkgo, of the versions of testcluster/kube. They are
// always built from source, once.
func EnsureSuite(ctx context.Context, progress io.Writer) (Assets, error) {
	return ensureSet(ctx, ofSuite, nil, progress)
}

// EnsureOCM returns the folder of the programs of testcluster/ocm: registration, placement and addon of a hub, and
// registration-operator, which has the agent of a spoke. They are always built from source, once.
func EnsureOCM(ctx context.Context, progress io.Writer) (Assets, error) {
	source, err := ocmSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	r, err := readRecipe(ctx, source, ofOCM)
	if err != nil {
		return Assets{}, err
	}
	return r.ensure(ctx, progress)
}

// Own are main packages of the workspace, and the existing folder of their programs. What is missing of Kubernetes and
// of them is built by one go command, which compiles some while it links others.
type Own struct {
	Dir      string
	Packages []string // import paths; the last element is the name of the program
}

// EnsureWith is Ensure, and builds main packages of the workspace into a folder. Those that are up to date stay.
func EnsureWith(ctx context.Context, own Own, progress io.Writer) (Assets, error) {
	if progress == nil {
		progress = io.Discard
	}
	together := &together{own: own}
	a, err := ensureSet(ctx, ofControlPlane, together, progress)
	if err != nil || together.built {
		return a, err
	}
	source, err := kubeSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	return a, compile(ctx, recipe{source: source, version: a.Version}, []string{"build"}, own.Dir+string(filepath.Separator), progress, own.Packages...)
}

// together are own programs that a build of Kubernetes takes along.
type together struct {
	own   Own
	built bool
}

func ensureSet(ctx context.Context, wanted func(tool string) bool, with *together, progress io.Writer) (Assets, error) {
	r, err := kubeRecipe(ctx, wanted)
	if err != nil {
		return Assets{}, err
	}
	r.with = with
	return r.ensure(ctx, progress)
}

func (r recipe) ensure(ctx context.Context, progress io.Writer) (Assets, error) {
	if progress == nil {
		progress = io.Discard
	}
	cache, err := CacheDir()
	if err != nil {
		return Assets{}, err
	}
	mode, err := readMode()
	if err != nil {
		return Assets{}, err
	}
	if a, ok, err := r.given(ctx, os.Getenv(GivenEnv), cache, progress); ok || err != nil {
		return a, err
	}
	there := func() string { return r.cached(cache, mode) }
	dir, err := once(ctx, filepath.Join(cache, r.key), r.product+" "+r.version, progress, there, func(temp string) (string, error) {
		return r.obtain(ctx, mode, temp, filepath.Join(cache, r.key), progress)
	})
	if err != nil {
		return Assets{}, err
	}
	return Assets{Dir: dir, Version: r.version, Origin: readOrigin(dir, Built)}, nil
}

// cached returns the folder in the cache that a mode allows, or nothing.
func (r recipe) cached(cache string, m mode) string {
	if dir := filepath.Join(cache, r.key); exists(dir) {
		return dir
	}
	if dir := filepath.Join(cache, r.key+releasedSuffix); m != modeBuild && exists(dir) {
		return dir
	}
	return ""
}

// once returns what there returns. If that is nothing, fill makes it, in a temporary folder beside the path, and
// returns its final path; other processes wait meanwhile.
func once(ctx context.Context, path, what string, progress io.Writer, there func() string, fill func(temp string) (string, error)) (string, error) {
	if done := there(); done != "" {
		return done, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintf(progress, "%s is being downloaded or built by another process, waiting for it\n", what)
		locked, err = lock.TryLockContext(ctx, lockRetry)
	}
	if err != nil || !locked {
		return "", fmt.Errorf("wait for the lock %s.lock: %w", path, errors.Join(err, ctx.Err()))
	}
	// The lock file stays: after its removal a third process could lock a new one while a second waits for the old one.
	defer func() { _ = lock.Unlock() }()
	if done := there(); done != "" {
		return done, nil
	}
	temp, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return "", fmt.Errorf("create a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	return fill(temp)
}

// obtain downloads and builds into a temporary folder, which then gets the name of the final one.
func (r recipe) obtain(ctx context.Context, m mode, temp, dir string, progress io.Writer) (string, error) {
	origin, why := "", ModeEnv+"="+string(m)
	rest := r
	if m != modeBuild && !r.alwaysBuilt {
		origins, failures, err := r.download(ctx, temp, progress)
		if err != nil {
			return "", err
		}
		rest.programs = slices.DeleteFunc(slices.Clone(r.programs), func(pkg string) bool { return origins[programName(pkg)] != "" })
		origin, why = describe(origins, rest.names()), failures
	}
	if len(rest.programs) > 0 {
		if m == modeDownload && !r.alwaysBuilt {
			return "", fmt.Errorf("%w: %s (%s=%s): %s", ErrNotDownloaded, strings.Join(rest.names(), ", "), ModeEnv, m, why)
		}
		if err := build(ctx, rest, temp, why, progress); err != nil {
			return "", err
		}
	}
	if r.simulates {
		if err := copyStages(ctx, r, filepath.Join(temp, stagesDir)); err != nil {
			return "", err
		}
	}
	if origin != "" {
		dir += releasedSuffix
		if err := os.WriteFile(filepath.Join(temp, originFile), []byte(origin), 0o644); err != nil {
			return "", fmt.Errorf("write the origin of the programs: %w", err)
		}
	}
	// MkdirTemp makes folders that only their owner can read; a cache may be shared.
	if err := errors.Join(os.Chmod(temp, 0o755), os.Rename(temp, dir)); err != nil {
		return "", fmt.Errorf("put the new folder in place: %w", err)
	}
	return dir, nil
}

// readOrigin returns the origin of a folder's programs, or instead for a folder without a record of it.
func readOrigin(dir, instead string) string {
	if text, err := os.ReadFile(filepath.Join(dir, originFile)); err == nil {
		return string(text)
	}
	return instead
}

// given returns the programs of the folder in KUBEBUILDER_ASSETS if it has all that the recipe needs, and reports in a
// line why not. The folder of envtest has no controller-manager and no scheduler.
func (r recipe) given(ctx context.Context, dir, cache string, progress io.Writer) (Assets, bool, error) {
	if dir == "" || r.alwaysBuilt {
		return Assets{}, false, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Assets{}, false, fmt.Errorf("find the folder of %s: %w", GivenEnv, err)
	}
	names := r.names()
	if r.simulates {
		names = append(names, stagesDir)
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return exists(filepath.Join(dir, name)) })
	switch {
	case !exists(dir):
		fmt.Fprintf(progress, "%s is not used: there is no %s\n", GivenEnv, dir)
		return Assets{}, false, nil
	case len(missing) == len(names): // another set of programs
		return Assets{}, false, nil
	case len(missing) > 0:
		fmt.Fprintf(progress, "%s is not used: %s has no %s\n", GivenEnv, dir, strings.Join(missing, ", "))
		return Assets{}, false, nil
	}
	if filepath.Dir(dir) == cache && strings.TrimSuffix(filepath.Base(dir), releasedSuffix) == r.key {
		return Assets{Dir: dir, Version: r.version, Origin: readOrigin(dir, Built)}, true, nil
	}
	kubernetes := names[slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "kube-") })]
	version, err := versionOf(ctx, filepath.Join(dir, kubernetes))
	if err != nil {
		return Assets{}, false, err
	}
	if version != r.version {
		fmt.Fprintf(progress, "%s has Kubernetes %s, testcluster/kube has %s\n", GivenEnv, version, r.version)
	}
	return Assets{Dir: dir, Version: version, Origin: readOrigin(dir, Given)}, true, nil
}

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

// Once makes a file that is not there: fill writes a temporary one, which gets the name when it is complete. Of several
// processes one makes it, and the others wait.
func Once(ctx context.Context, file string, progress io.Writer, fill func(temp string) error) error {
	there := func() string {
		if exists(file) {
			return file
		}
		return ""
	}
	_, err := once(ctx, file, filepath.Base(file), progress, there, func(folder string) (string, error) {
		temp := filepath.Join(folder, filepath.Base(file))
		if err := fill(temp); err != nil {
			return "", err
		}
		return file, os.Rename(temp, file)
	})
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
