// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

const versionsFile = "hack/versions.yaml"

// Check checks a commit from outside of the repository.
type Check struct {
	Root string
	// Commit is empty for the tracked files as they are.
	Commit string
	// Modules are the folders of the modules to check; empty for all that are released.
	Modules []string
	Out     io.Writer
}

// Run makes a module proxy from the commit, and gets each module from it in an empty module: it must build, on exactly
// the pinned versions. Then the unit tests of all libraries must pass on what they require and on the newest versions,
// and their API is compared with that of the last release.
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
	// With all go.sum files other modules are compared without the checksum database, as far as this repository has them.
	sums, err := r.git(ctx, "grep", "-h", "-e", "^", commit, "--", "*go.sum", "go.work.sum")
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: no such lines
		return err
	}
	user := consumer{pins: pins, env: env, sums: sums, proxy: proxy, scratch: scratch}

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
	var libraries []string
	for _, dir := range pins.Release.Modules() {
		if len(c.Modules) > 0 && !slices.Contains(c.Modules, dir) {
			continue
		}
		step(dir, func() error { return user.alone(ctx, dir) })
		if slices.Contains(pins.Release.Libraries, dir) {
			libraries = append(libraries, dir)
			if added, err := user.adds(ctx, dir); err != nil {
				errs = append(errs, fmt.Errorf("%s in an operator: %w", dir, err))
			} else if added != nil {
				fmt.Fprintf(c.Out, "    adds %d modules to vendor/ of an operator: %s\n", len(added), strings.Join(added, " "))
			}
		}
	}
	if len(libraries) > 0 {
		step("unit tests on the required versions", func() error { return lowest(ctx, r, commit, filepath.Join(scratch, "lowest"), libraries) })
		step("unit tests on the newest versions", func() error { return newest(ctx, r, commit, filepath.Join(scratch, "newest"), pins, libraries) })
		step("API since the last release", func() error {
			return compareAPI(ctx, r, commit, filepath.Join(scratch, "api"), pins.Release.Version, libraries, c.Out)
		})
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

// consumer is a repository that uses the modules.
type consumer struct {
	pins    *versions.File
	env     []string
	sums    string
	proxy   string
	scratch string
}

// alone builds a module on the versions that Go selects when nothing else is required.
func (u consumer) alone(ctx context.Context, dir string) error {
	folder, err := u.empty(dir)
	if err != nil {
		return err
	}
	module := workspace.ModulePrefix + dir
	for _, args := range [][]string{{"get", module + "@" + u.pins.Release.Version}, {"build", module + "/..."}} {
		if _, err := run(ctx, folder, u.env, args...); err != nil {
			return err
		}
	}
	required, err := u.required(dir)
	if err != nil {
		return err
	}
	out, err := run(ctx, folder, u.env, "list", "-m", "-f", "{{.Path}} {{.Version}} {{.GoVersion}}", "all")
	if err != nil {
		return err
	}
	return versionFaults(out, u.pins, u.pins.ColumnOf(dir), required)
}

// empty makes a repository without requirements.
func (u consumer) empty(name string) (folder string, err error) {
	name = strings.ReplaceAll(name, "/", "-")
	folder = filepath.Join(u.scratch, "outside", name)
	mod := fmt.Sprintf("module example.com/%s\n\ngo %s\n", name, u.pins.Go[versions.Set])
	return folder, errors.Join(
		os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod), 0o600),
		os.WriteFile(filepath.Join(folder, "go.sum"), []byte(u.sums), 0o600),
	)
}

// adds returns the modules that vendor/ of an operator has more if it imports the root package of a library, or nil if
// the library is not for operators.
func (u consumer) adds(ctx context.Context, dir string) ([]string, error) {
	required, err := u.required(dir)
	if err != nil {
		return nil, err
	}
	get := []string{"get"}
	for _, has := range []struct{ module, folder string }{ // an operator has these, and a client
		{"github.com/openshift/api", ""}, {"k8s.io/api", ""}, {"k8s.io/apimachinery", ""}, {"k8s.io/client-go", "/tools/clientcmd"},
	} {
		if required[has.module] == "" {
			return nil, nil // no library for operators
		}
		get = append(get, has.module+has.folder+"@"+required[has.module])
	}
	// The folder of alone has the module. conformance has no package at its root: nothing there is for operators.
	name, err := run(ctx, filepath.Join(u.scratch, "outside", dir), u.env, "list", "-e", "-find", "-f", "{{.Name}}", workspace.ModulePrefix+dir)
	if err != nil || strings.TrimSpace(name) == "" {
		return nil, err
	}
	source := "package main\n\nimport _ \"github.com/openshift/api/operator/v1\"\nimport _ \"k8s.io/client-go/tools/clientcmd\"\n"
	var vendored [2]map[string]bool
	for i, name := range []string{"operator-without-" + dir, "operator-with-" + dir} {
		folder, err := u.empty(name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(source+"\nfunc main() {}\n"), 0o600); err != nil {
			return nil, err
		}
		for _, args := range [][]string{get, {"mod", "vendor"}} {
			if _, err := run(ctx, folder, u.env, args...); err != nil {
				return nil, err
			}
		}
		text, err := os.ReadFile(filepath.Join(folder, "vendor", "modules.txt"))
		if err != nil {
			return nil, err
		}
		vendored[i] = map[string]bool{}
		for _, match := range vendoredModule.FindAllSubmatch(text, -1) {
			vendored[i][string(match[1])] = true
		}
		get = append(get, workspace.ModulePrefix+dir+"@"+u.pins.Release.Version)
		source += "import _ \"" + workspace.ModulePrefix + dir + "\"\n"
	}
	maps.DeleteFunc(vendored[1], func(module string, _ bool) bool { return vendored[0][module] })
	added := slices.AppendSeq([]string{}, maps.Keys(vendored[1]))
	slices.Sort(added)
	return added, nil
}

// vendoredModule matches a module of vendor/modules.txt that has packages there.
var vendoredModule = regexp.MustCompile(`(?m)^# (\S+) \S+\n(?:## .*\n)?[^#\n]`)

// versionFaults compares the versions that Go selects for the modules with the pins and the release. Pinned modules
// that are only in the graph, because a dependency requires them, may be older. Its lines have a module, its version,
// which is empty for the main module, and its Go version.
func versionFaults(selected string, pins *versions.File, column versions.Column, modules map[string]string) error {
	var faults []error
	for line := range strings.Lines(selected) {
		module, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, goVersion, _ := strings.Cut(rest, " ")
		want, pinned := pins.PinOf(module, column)
		pinned = pinned && modules[module] != ""
		if strings.HasPrefix(module, workspace.ModulePrefix) {
			want, pinned = pins.Release.Version, true
		}
		switch {
		case pinned && version != want:
			faults = append(faults, fmt.Errorf("go list -m selects %s %s, must be %s", module, version, want))
		case version == "" && goVersion == pins.Go[versions.Newest] && column != versions.Floor: // no library
		case version == "" && goVersion != pins.Go[versions.Set]:
			faults = append(faults, fmt.Errorf("needs Go %s, must need %s", goVersion, pins.Go[versions.Set]))
		}
	}
	return errors.Join(faults...)
}

// required returns the versions in the go.mod of a released module.
func (u consumer) required(dir string) (map[string]string, error) {
	name := filepath.Join(u.proxy, filepath.FromSlash(workspace.ModulePrefix+dir), "@v", u.pins.Release.Version+".mod")
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

// newest tests libraries, also on an API server, in a copy of the commit on versions that are at least the newest. Go
// selects one version of a module for a whole workspace, so one more module in it raises that of all.
func newest(ctx context.Context, r repository, commit, tree string, pins *versions.File, dirs []string) error {
	if err := r.checkOut(ctx, commit, tree); err != nil {
		return err
	}
	work := &modfile.WorkFile{Syntax: &modfile.FileSyntax{}}
	raised := &modfile.File{}
	faults := []error{
		work.AddGoStmt(pins.Go[versions.Newest]), work.AddUse("./"+raises, ""),
		raised.AddModuleStmt("example.com/" + raises), raised.AddGoStmt(pins.Go[versions.Newest]),
	}
	test := slices.Clone(unitTests)
	used := slices.Clone(dirs)
	for _, dir := range dirs {
		test = append(test, "./"+dir+"/...")
		if _, err := os.Stat(filepath.Join(tree, onAPIServer, dir)); err == nil {
			test = append(test, "./"+onAPIServer+"/"+dir+"/...")
			used = append(used, path.Dir(onAPIServer), onAPIServer)
		}
	}
	slices.Sort(used)
	for _, dir := range slices.Compact(used) {
		faults = append(faults, work.AddUse("./"+dir, ""))
	}
	for _, pin := range pins.Pins {
		for _, module := range pin.Modules {
			if pin.Newest != "" {
				faults = append(faults, raised.AddRequire(module, pin.Newest))
			}
		}
	}
	text, err := raised.Format()
	faults = append(faults, err, os.Mkdir(filepath.Join(tree, raises), 0o755),
		os.WriteFile(filepath.Join(tree, raises, "go.mod"), text, 0o600),
		os.WriteFile(filepath.Join(tree, "go.work"), modfile.Format(work.Syntax), 0o600))
	if err := errors.Join(faults...); err != nil {
		return err
	}
	_, err = run(ctx, tree, append(os.Environ(), "GOWORK="+filepath.Join(tree, "go.work")), test...)
	return err
}

var unitTests = []string{"test", "-short", "-vet=off", "-ldflags=-s"}

// lowest runs the unit tests of each library on the versions that it requires.
func lowest(ctx context.Context, r repository, commit, tree string, dirs []string) error {
	if err := r.checkOut(ctx, commit, tree); err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		_, err := run(ctx, filepath.Join(tree, dir), append(os.Environ(), "GOWORK=off"), append(slices.Clone(unitTests), "./...")...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// onAPIServer is the module with the tests of libraries on an API server.
const onAPIServer = "testcluster/modules"

// raises is the module that raises versions.
const raises = "newest"

// progress matches the lines of a command's output that report no fault.
var progress = regexp.MustCompile(`(?m)^(go: (downloading|added|upgraded) |ok |\?\s).*\n`)

// run runs a command of Go, and returns its output. An error has its last 60 lines.
func run(ctx context.Context, folder string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = folder, append(slices.Clone(env), "PWD="+folder)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(progress.ReplaceAllString(string(out), "")), "\n")
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
	return string(out), nil
}
