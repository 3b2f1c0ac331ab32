// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

const versionsFile = "hack/versions.yaml"

//go:embed testdata/examples
var embedded embed.FS

// Examples has a folder for each library, with a program that calls its main functions.
func Examples() fs.FS {
	examples, err := fs.Sub(embedded, "testdata/examples")
	if err != nil {
		panic(err) // the name is constant
	}
	return examples
}

// Check checks a commit from outside of the repository.
type Check struct {
	Root string
	// Commit is empty for the tracked files as they are.
	Commit string
	// Modules are the folders of the modules to check; empty for all that are released.
	Modules  []string
	Examples fs.FS
	Out      io.Writer
}

// Run makes a module proxy from the commit, and gets each library from it in an empty module: its example is vetted,
// built and run, and all pinned modules must have exactly the versions of its leg. Then all libraries are in one module
// that is raised to the newest leg. Programs are added with all that they need, on their own leg.
func (c Check) Run(ctx context.Context) (err error) {
	r := repository{c.Root}
	commit, err := r.commit(ctx, c.Commit)
	if err != nil {
		return err
	}
	text, err := r.file(ctx, commit, versionsFile)
	if err != nil {
		return err
	}
	pins, err := versions.Parse(versionsFile, text)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sno-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	proxy := filepath.Join(scratch, "proxy")
	if err := writeProxy(ctx, r, proxy, commit, pins.Release.Version, pins.Release.Modules()); err != nil {
		return err
	}
	env, err := outside(ctx, c.Root, proxy, filepath.Join(scratch, "mod"))
	if err != nil {
		return err
	}
	sums, err := checksums(ctx, r, commit)
	if err != nil {
		return err
	}
	user := consumer{pins: pins, examples: c.Examples, env: env, sums: sums, proxy: proxy, scratch: scratch}

	fmt.Fprintf(c.Out, "Checking %s of commit %s\n", pins.Release.Version, commit)
	var errs []error
	step := func(name string, run func() error) {
		start := time.Now()
		err := run()
		result := "ok"
		if err != nil {
			result = "FAILED"
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		fmt.Fprintf(c.Out, "  %-40s %-6s %5.1f s\n", name, result, time.Since(start).Seconds())
		if err != nil {
			fmt.Fprintf(c.Out, "    %s\n", strings.ReplaceAll(err.Error(), "\n", "\n    "))
		}
	}
	chosen := func(dir string) bool { return len(c.Modules) == 0 || slices.Contains(c.Modules, dir) }
	var libraries []string
	for _, dir := range pins.Release.Libraries {
		if chosen(dir) {
			libraries = append(libraries, dir)
			leg, _ := pins.LegOf(dir)
			step(fmt.Sprintf("%s, %s versions", dir, leg), func() error { return user.library(ctx, dir, leg) })
		}
	}
	if len(libraries) > 0 {
		step("all libraries, newest versions", func() error { return user.newest(ctx, libraries) })
	}
	for _, dir := range pins.Release.Programs {
		if chosen(dir) {
			leg, _ := pins.LegOf(dir)
			step(fmt.Sprintf("%s, %s versions", dir, leg), func() error { return user.programs(ctx, dir, leg) })
		}
	}
	return errors.Join(errs...)
}

// outside returns the environment of a person who has the repository's modules from the proxy only. The others come
// from the user's cache and proxies. The module cache is a new one, because the user's may have another state of the
// same version.
func outside(ctx context.Context, root, proxy, cache string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOMODCACHE", "GONOSUMDB", "GOFLAGS")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read the settings of Go: %w", err)
	}
	var user struct{ GOPROXY, GOMODCACHE, GONOSUMDB, GOFLAGS string }
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, fmt.Errorf("read the settings of Go: %w", err)
	}
	own := strings.TrimSuffix(workspace.ModulePrefix, "/")
	return append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS="+strings.TrimSpace(user.GOFLAGS+" -mod=mod -modcacherw -trimpath"),
		"GOMODCACHE="+cache,
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(filepath.Join(user.GOMODCACHE, "cache", "download"))+","+user.GOPROXY,
		"GONOSUMDB="+strings.Trim(user.GONOSUMDB+","+own, ","),
		// GOPRIVATE of the user must not exclude the modules from the proxy, and a missing one is no reason for git clone.
		"GONOPROXY=none",
		"GOVCS="+own+":off",
	), nil
}

// checksums returns the lines of all go.sum files, so that other modules are compared without the checksum database.
func checksums(ctx context.Context, r repository, commit string) ([]byte, error) {
	names, err := r.git(ctx, "ls-tree", "-r", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	lines := map[string]bool{}
	for _, name := range strings.Split(names, "\n") {
		if base := path.Base(name); base != "go.sum" && base != "go.work.sum" || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := r.file(ctx, commit, name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			lines[line] = true
		}
	}
	var all strings.Builder
	for line := range lines {
		all.WriteString(line)
	}
	return []byte(all.String()), nil
}

// consumer is a repository that uses the modules.
type consumer struct {
	pins     *versions.File
	examples fs.FS
	env      []string
	sums     []byte
	proxy    string
	scratch  string
}

func (u consumer) library(ctx context.Context, dir string, leg versions.Leg) error {
	folder, err := u.newModule(strings.ReplaceAll(dir, "/", "-"), leg)
	if err != nil {
		return err
	}
	if err := u.goCommand(ctx, folder, "get", u.at(dir)); err != nil {
		return err
	}
	if err := u.copyExample(dir, folder); err != nil {
		return err
	}
	for _, args := range [][]string{{"vet", "."}, {"build", "-o", "example.out", "."}, resolve(dir)} {
		if err := u.goCommand(ctx, folder, args...); err != nil {
			return err
		}
	}
	if err := run(ctx, folder, u.env, filepath.Join(folder, "example.out")); err != nil {
		return fmt.Errorf("example: %w", err)
	}
	required, err := u.released(dir)
	if err != nil {
		return err
	}
	return u.hasVersions(ctx, folder, leg, required)
}

func (u consumer) programs(ctx context.Context, dir string, leg versions.Leg) error {
	folder, err := u.newModule(strings.ReplaceAll(dir, "/", "-"), leg)
	if err != nil {
		return err
	}
	if err := u.goCommand(ctx, folder, "get", u.at(dir)); err != nil {
		return err
	}
	if err := u.goCommand(ctx, folder, resolve(dir)...); err != nil {
		return err
	}
	required, err := u.released(dir)
	if err != nil {
		return err
	}
	return u.hasVersions(ctx, folder, leg, required)
}

func (u consumer) newest(ctx context.Context, dirs []string) error {
	folder, err := u.newModule("newest", versions.Newest)
	if err != nil {
		return err
	}
	get := []string{"get"}
	for _, dir := range dirs {
		get = append(get, u.at(dir))
	}
	if err := u.goCommand(ctx, folder, get...); err != nil {
		return err
	}
	raised := map[string]string{}
	for _, dir := range dirs {
		if err := u.copyExample(dir, filepath.Join(folder, filepath.FromSlash(dir))); err != nil {
			return err
		}
		required, err := u.released(dir)
		if err != nil {
			return err
		}
		for module := range required {
			if version, pinned := u.pins.PinOf(module, versions.Newest); pinned {
				raised[module] = version
			}
		}
	}
	if len(raised) > 0 {
		get = []string{"get"}
		for module, version := range raised {
			get = append(get, module+"@"+version)
		}
		if err := u.goCommand(ctx, folder, get...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"build", "./..."}, resolve(dirs...)} {
		if err := u.goCommand(ctx, folder, args...); err != nil {
			return err
		}
	}
	return u.hasVersions(ctx, folder, versions.Newest, raised)
}

// resolve returns the arguments of a command that fails for a package that the modules need and Go does not find. Steps
// standalone and workspace of verify compile all packages on the same versions.
func resolve(dirs ...string) []string {
	args := []string{"list", "-deps", "-f", ""}
	for _, dir := range dirs {
		args = append(args, workspace.ModulePrefix+dir+"/...")
	}
	return args
}

// newModule makes the folder of an empty module on the Go version of the leg.
func (u consumer) newModule(name string, leg versions.Leg) (string, error) {
	folder := filepath.Join(u.scratch, "outside", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	mod := fmt.Sprintf("module example.com/%s\n\ngo %s\n", name, u.pins.Go[leg])
	return folder, errors.Join(
		os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod), 0o600),
		os.WriteFile(filepath.Join(folder, "go.sum"), u.sums, 0o600),
	)
}

func (u consumer) at(dir string) string {
	return workspace.ModulePrefix + dir + "@" + u.pins.Release.Version
}

func (u consumer) copyExample(dir, folder string) error {
	example, err := fs.Sub(u.examples, dir)
	if err != nil {
		return err
	}
	files, err := fs.Glob(example, "*.go")
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("hack/release/testdata/examples/%s has no program that calls the module's main functions", dir)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range files {
		text, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// hasVersions compares the versions that Go selects for the modules with the pins of the leg and the release. Pinned
// modules that are only in the graph, because a dependency requires them, may be older.
func (u consumer) hasVersions(ctx context.Context, folder string, leg versions.Leg, modules map[string]string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{.GoVersion}}", "all")
	cmd.Dir, cmd.Env = folder, append(slices.Clone(u.env), "PWD="+folder)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list -m all: %w", withStderr(err))
	}
	return versionFaults(string(out), u.pins, leg, modules)
}

// versionFaults takes lines of a module, its version, which is empty for the main module, and its Go version.
func versionFaults(selected string, pins *versions.File, leg versions.Leg, modules map[string]string) error {
	var faults []error
	for line := range strings.Lines(selected) {
		module, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, goVersion, _ := strings.Cut(rest, " ")
		want, pinned := pins.PinOf(module, leg)
		pinned = pinned && modules[module] != ""
		if strings.HasPrefix(module, workspace.ModulePrefix) {
			want, pinned = pins.Release.Version, true
		}
		switch {
		case pinned && version != want:
			faults = append(faults, fmt.Errorf("go list -m selects %s %s, must be %s (%s leg)", module, version, want, leg))
		case version == "" && goVersion != pins.Go[leg]:
			faults = append(faults, fmt.Errorf("needs Go %s, must need %s (%s leg)", goVersion, pins.Go[leg], leg))
		}
	}
	return errors.Join(faults...)
}

// released returns what the go.mod of a released module requires.
func (u consumer) released(dir string) (map[string]string, error) {
	return requirements(filepath.Join(u.proxy, filepath.FromSlash(workspace.ModulePrefix+dir), "@v", u.pins.Release.Version+".mod"))
}

// requirements returns the versions in a go.mod.
func requirements(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	required := map[string]string{}
	for _, require := range mod.Require {
		required[require.Mod.Path] = require.Mod.Version
	}
	return required, nil
}

func (u consumer) goCommand(ctx context.Context, folder string, args ...string) error {
	return run(ctx, folder, u.env, "go", args...)
}

func run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "PWD="+dir)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, last(string(out)))
	}
	return nil
}

// last returns the end of a command's output, without the lines of downloads.
func last(out string) string {
	const most = 30
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "go: downloading ") && !strings.HasPrefix(line, "go: added ") && !strings.HasPrefix(line, "go: upgraded ") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

func withStderr(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, last(string(exit.Stderr)))
	}
	return err
}
