// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
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

const (
	stagesDir = "stages"
	// lockRetry is the interval at which a process retries the lock of another that fills the cache.
	lockRetry = 200 * time.Millisecond
)

// Own are main packages of the workspace, and the folder of their programs. What is missing of Kubernetes and of them
// is built by one go command, which compiles some while it links others.
type Own struct {
	Dir      string
	Packages []string // import paths; the last element is the name of the program
}

// EnsureWith is Ensure, and builds main packages of the workspace into a folder. Those that are up to date stay.
func EnsureWith(ctx context.Context, own Own, progress io.Writer) (Assets, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	if progress == nil {
		progress = io.Discard
	}
	if err := os.MkdirAll(own.Dir, 0o755); err != nil {
		return Assets{}, fmt.Errorf("make the folder of programs: %w", err)
	}
	together := &together{own: own}
	there, err := ensureGiven(ctx, source, ofControlPlane, together, progress)
	if err != nil || together.built {
		return there, err
	}
	names := make([]string, len(own.Packages))
	for i, pkg := range own.Packages {
		names[i] = path.Base(pkg)
	}
	step := newStepProgress(progress, strings.Join(names, ", "))
	return there, compile(ctx, recipe{source: source, version: there.Version}, []string{"build"}, own.Dir+string(filepath.Separator), step, own.Packages...)
}

// together are own programs that a build of Kubernetes takes along.
type together struct {
	own   Own
	built bool
}

// Ensure returns the folder of programs for the versions of testcluster/kube: that of KUBEBUILDER_ASSETS if it is
// complete, that in the cache, or a new one, downloaded or built (SNO_ASSETS). One process at a time fills the cache.
// Progress may be nil. Errors: ErrNoSource, ErrSetting, ErrNotDownloaded, ErrModuleUnavailable, and the compiler's.
func Ensure(ctx context.Context, progress io.Writer) (Assets, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	return ensureGiven(ctx, source, ofControlPlane, nil, progress)
}

// ensureGiven is ensure with the folder of KUBEBUILDER_ASSETS, which has precedence.
func ensureGiven(ctx context.Context, source string, wanted func(tool string) bool, with *together, progress io.Writer) (Assets, error) {
	if progress == nil {
		progress = io.Discard
	}
	cache, err := CacheDir()
	if err != nil {
		return Assets{}, err
	}
	r, err := readRecipe(ctx, source, wanted)
	if err != nil {
		return Assets{}, err
	}
	if assets, ok, err := given(ctx, r, os.Getenv(GivenEnv), cache, progress); ok || err != nil {
		return assets, err
	}
	r.with = with
	return r.ensure(ctx, cache, progress)
}

func ensure(ctx context.Context, source string, progress io.Writer) (Assets, error) {
	r, err := readRecipe(ctx, source, ofControlPlane)
	if err != nil {
		return Assets{}, err
	}
	return r.ensureCached(ctx, progress)
}

// ensureCached is ensure with the cache of this user.
func (r recipe) ensureCached(ctx context.Context, progress io.Writer) (Assets, error) {
	if progress == nil {
		progress = io.Discard
	}
	cache, err := CacheDir()
	if err != nil {
		return Assets{}, err
	}
	return r.ensure(ctx, cache, progress)
}

// ensure returns the programs in the cache, which it fills first if needed. Those of a control plane become
// <cache>/current.
func (r recipe) ensure(ctx context.Context, cache string, progress io.Writer) (Assets, error) {
	s, err := readSettings(os.Getenv)
	if err != nil {
		return Assets{}, err
	}
	if r.alwaysBuilt {
		s.mode = modeBuild
	}
	a, err := r.keep(ctx, s, cache, progress)
	if err == nil && slices.ContainsFunc(r.programs, ofControlPlane) {
		err = pointCurrent(cache, filepath.Base(a.Dir))
	}
	return a, err
}

func (r recipe) keep(ctx context.Context, s settings, cache string, progress io.Writer) (Assets, error) {
	dir := r.cached(cache, s.mode)
	if dir == "" {
		var err error
		if dir, err = r.obtainLocked(ctx, s, cache, progress); err != nil {
			return Assets{}, err
		}
	}
	origin, err := readOrigin(dir, Built)
	return Assets{Dir: dir, Version: r.version, Origin: origin}, err
}

// downloadedSuffix ends the name of a folder with a downloaded program.
const downloadedSuffix = "-downloaded"

// cached returns the folder in the cache that a mode allows, or nothing.
func (r recipe) cached(cache string, m mode) string {
	if dir := filepath.Join(cache, r.key); isDir(dir) {
		return dir
	}
	if dir := filepath.Join(cache, r.key+downloadedSuffix); m != modeBuild && isDir(dir) {
		return dir
	}
	return ""
}

func (r recipe) obtainLocked(ctx context.Context, s settings, cache string, progress io.Writer) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	file := filepath.Join(cache, r.key+".lock")
	lock := flock.New(file)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintf(progress, "Kubernetes %s is being downloaded or built by another process, waiting for it\n", r.version)
		locked, err = lock.TryLockContext(ctx, lockRetry)
	}
	if err != nil || !locked {
		return "", fmt.Errorf("wait for the lock %s: %w", file, errors.Join(err, ctx.Err()))
	}
	// The lock file stays: after its removal a third process could lock a new one while a second waits for the old one.
	defer func() { _ = lock.Unlock() }()
	if dir := r.cached(cache, s.mode); dir != "" {
		return dir, nil
	}
	return r.obtain(ctx, s, cache, progress)
}

// obtain fills a temporary folder and renames it.
func (r recipe) obtain(ctx context.Context, s settings, cache string, progress io.Writer) (string, error) {
	temp, err := os.MkdirTemp(cache, "."+r.key+"-")
	if err != nil {
		return "", fmt.Errorf("create a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	origins, why := map[string]programOrigin{}, ModeEnv+"="+string(s.mode)
	if s.mode != modeBuild {
		fmt.Fprintf(progress, "Downloading Kubernetes %s (once)\n", r.version)
		var failures []failure
		if origins, failures, err = download(ctx, r, s, temp, progress); err != nil {
			return "", err
		}
		why = reasons(failures)
	}
	dir := filepath.Join(cache, r.key)
	if len(origins) > 0 {
		dir += downloadedSuffix
	}
	if rest := r.without(origins); len(rest.programs) > 0 {
		if s.mode == modeDownload {
			return "", fmt.Errorf("%w: %s (%s=%s): %s", ErrNotDownloaded, strings.Join(rest.names(), ", "), ModeEnv, s.mode, why)
		}
		if err := build(ctx, rest, temp, why, progress); err != nil {
			return "", err
		}
		for _, name := range rest.names() {
			origins[name] = programOrigin{}
		}
	}
	if r.simulates {
		if err := copyStages(ctx, r, filepath.Join(temp, stagesDir)); err != nil {
			return "", err
		}
	}
	if strings.HasSuffix(dir, downloadedSuffix) {
		if err := writeOrigin(temp, origins); err != nil {
			return "", err
		}
	}
	// MkdirTemp makes folders that only their owner can read; a cache may be shared.
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", fmt.Errorf("open the new folder to readers: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return "", fmt.Errorf("put the new folder in place: %w", err)
	}
	return dir, nil
}

// build builds the recipe's programs into a folder.
func build(ctx context.Context, r recipe, dir, why string, progress io.Writer) error {
	names := strings.Join(r.names(), ", ")
	fmt.Fprintf(progress, "Building Kubernetes %s from source (%s), minutes when Go's build cache is empty. Reason: %s\n", r.version, names, why)
	started := time.Now()
	// One command, so that some programs are linked while others are compiled.
	step := newStepProgress(progress, names)
	plain := slices.DeleteFunc(slices.Clone(r.programs), func(pkg string) bool { return isSuite(pkg) || isKwok(pkg) })
	if r.with != nil {
		plain = append(plain, r.with.own.Packages...)
	}
	if len(plain) > 0 {
		if err := buildPrograms(ctx, r, dir+string(filepath.Separator), step, plain...); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(r.programs, isKwok) {
		alone := r
		alone.source, alone.env = r.kwok, []string{"GOWORK=off"}
		if err := buildPrograms(ctx, alone, dir+string(filepath.Separator), newStepProgress(progress, "kwok"), kwokProgram); err != nil {
			return err
		}
	}
	for _, pkg := range r.programs {
		if isSuite(pkg) {
			if err := buildSuite(ctx, r, filepath.Join(dir, programName(pkg)), step, pkg); err != nil {
				return err
			}
		}
	}
	if err := renamePrograms(r, dir); err != nil {
		return err
	}
	if err := r.with.move(dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "Built Kubernetes %s in %s\n", r.version, time.Since(started).Round(time.Second))
	return nil
}

// move moves own programs out of the folder of Kubernetes' programs.
func (t *together) move(from string) error {
	if t == nil {
		return nil
	}
	for _, pkg := range t.own.Packages {
		if err := os.Rename(filepath.Join(from, path.Base(pkg)), filepath.Join(t.own.Dir, path.Base(pkg))); err != nil {
			return fmt.Errorf("put the built program in place: %w", err)
		}
	}
	t.built = true
	return nil
}

func renamePrograms(r recipe, dir string) error {
	for _, pkg := range r.programs {
		if name, built := programName(pkg), builtName(pkg); name != built && !isSuite(pkg) {
			if err := os.Rename(filepath.Join(dir, built), filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("name what was built of %s: %w", pkg, err)
			}
		}
	}
	return nil
}

// buildPrograms builds packages into a file, or into a folder whose path ends in a separator.
func buildPrograms(ctx context.Context, r recipe, output string, step *stepProgress, packages ...string) error {
	return compile(ctx, r, []string{"build"}, output, step, packages...)
}

// buildSuite builds the tests of a package into a program.
func buildSuite(ctx context.Context, r recipe, output string, step *stepProgress, pkg string) error {
	// vet would take minutes for code of another module.
	return compile(ctx, r, []string{"test", "-c", "-vet=off"}, output, step, pkg)
}

func compile(ctx context.Context, r recipe, subcommand []string, output string, step *stepProgress, packages ...string) error {
	env := append([]string{"CGO_ENABLED=0", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}, r.env...)
	args := slices.Concat(subcommand, []string{"-v", "-mod=readonly", "-buildvcs=false", "-trimpath"}, linkerFlags(r.version), []string{"-o", output}, packages)
	cmd := command(ctx, r.source, env, args...)
	what := strings.Join(packages, " ")
	// SIGINT makes the go command remove its own temporary folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: is Go installed and on PATH? %w", what, err)
	}
	complaints := step.follow(stderr)
	err = cmd.Wait()
	if err == nil {
		step.done()
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", what, ctx.Err())
	}
	return explain(fmt.Errorf("build %s: %w:\n%s", what, err, strings.Join(complaints, "\n")))
}

// copyStages copies kwok's stages from the module that kwok is built from, so that their versions match.
func copyStages(ctx context.Context, r recipe, dir string) error {
	module, err := moduleFolder(ctx, r.kwok, []string{"GOWORK=off"}, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of simulation stages: %w", err)
	}
	for _, folder := range stageFolders {
		files, err := filepath.Glob(filepath.Join(module, "kustomize", "stage", filepath.FromSlash(folder), "*.yaml"))
		if err != nil {
			return fmt.Errorf("list simulation stages: %w", err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a simulation stage: %w", err)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
				return fmt.Errorf("write a simulation stage: %w", err)
			}
		}
		if len(files) == 0 {
			return fmt.Errorf("this version of sigs.k8s.io/kwok has no simulation stages in kustomize/stage/%s", folder)
		}
	}
	return nil
}

// pointCurrent replaces the link <cache>/current atomically, so that it is never missing.
func pointCurrent(cache, key string) error {
	link := filepath.Join(cache, "current")
	if target, err := os.Readlink(link); err == nil && target == key {
		return nil
	}
	temp, err := os.MkdirTemp(cache, ".current-")
	if err != nil {
		return fmt.Errorf("point %s at the build: %w", link, err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	fresh := filepath.Join(temp, "current")
	if err := os.Symlink(key, fresh); err != nil {
		return fmt.Errorf("point %s at the build: %w", link, err)
	}
	if err := os.Rename(fresh, link); err != nil {
		return fmt.Errorf("point %s at the build: %w", link, err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

type stepProgress struct {
	out      io.Writer
	label    string
	started  time.Time
	packages int
}

const reportEvery = 5 * time.Second

func newStepProgress(out io.Writer, label string) *stepProgress {
	return &stepProgress{out: out, label: label, started: time.Now()}
}

// follow reads the go command's standard error to its end, reports progress, and returns the lines that are neither
// package names nor downloads: the errors.
func (s *stepProgress) follow(stderr io.Reader) []string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(stderr)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	var complaints []string
	doing := "compiling"
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				return complaints
			case strings.HasPrefix(line, "go: downloading "):
				doing = strings.TrimPrefix(line, "go: ")
			case strings.HasPrefix(line, "# ") || strings.ContainsAny(line, " \t"):
				complaints = append(complaints, line)
			default:
				doing = "compiling"
				s.packages++
			}
		case now := <-ticker.C:
			fmt.Fprintf(s.out, "  %s: %s, %d packages compiled, %s\n", s.label, doing, s.packages, now.Sub(s.started).Round(time.Second))
		}
	}
}

func (s *stepProgress) done() {
	fmt.Fprintf(s.out, "  %s: done, %d packages compiled, %s\n", s.label, s.packages, time.Since(s.started).Round(100*time.Millisecond))
}
