// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

const (
	vulnerabilitiesFile = "hack/vulnerabilities.yaml"
	// databaseModule has the reports of the Go vulnerability database. The module proxy serves it, also where the
	// database's host cannot be reached.
	databaseModule = "golang.org/x/vulndb"
	// databaseTool requires the database's version.
	databaseTool = "tools/indexdb"
	// databaseLimit is the time in which the download of the database must have ended.
	databaseLimit = 2 * time.Minute
)

// accepted is an entry of hack/vulnerabilities.yaml.
type accepted struct {
	IDs []string `json:"ids"`
	// In are the scans with the package: scanOfWorkspace or the folder of a module.
	In    []string `json:"in"`
	Why   string   `json:"why"`
	Until string   `json:"until"` // 2006-01-02
}

// scanOfWorkspace is the scan of all modules in go.work.
const scanOfWorkspace = "go.work"

// vulnerability is one of a package that is compiled.
type vulnerability struct{ id, in string }

type details struct {
	summary, pkg, fixed string
	// standard means that it is in Go's own library.
	standard bool
}

// checkVulnerabilities runs govulncheck over the workspace and the programs outside of it, or over nothing. It skips
// tests, and examples outside of the workspace, because nobody installs them. A package that is compiled counts,
// whether or not its vulnerable functions are called: a search for calls takes minutes and gigabytes. Vulnerabilities
// of Go's own library are only printed, because the Go release is a choice of the person who builds. Without the
// database it prints why, and finds nothing.
func checkVulnerabilities(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	if !ws.InFocus(vulnerabilitiesFile) {
		fmt.Fprintln(w, "      not for one module")
		return nil
	}
	text, err := os.ReadFile(ws.Path(vulnerabilitiesFile))
	if err != nil {
		return err
	}
	var entries []accepted
	if err := yaml.UnmarshalStrict(text, &entries); err != nil {
		return fmt.Errorf("%s: %w", vulnerabilitiesFile, err)
	}
	database, err := vulnerabilityDatabase(ctx, ws)
	if err != nil {
		fmt.Fprintf(w, "      SKIPPED: no vulnerability database: %v\n", err)
		return ctx.Err()
	}
	govulncheck, err := toolPath(ctx, ws, "govulncheck")
	if err != nil {
		return err
	}
	found := map[vulnerability]details{}
	var together []string
	for _, m := range ws.WithCode() {
		switch {
		case m.InWork:
			together = append(together, ws.Path(m.Dir)+"/...")
		case !strings.HasPrefix(m.Dir, "examples/"):
			if err := scan(ctx, ws, m.Dir, m.Dir, workspace.Standalone(), govulncheck, database, found, "./..."); err != nil {
				return err
			}
		}
	}
	// govulncheck requires a go.mod in the folder where it runs.
	if err := scan(ctx, ws, scanOfWorkspace, "hack", []string{"GOWORK=" + ws.Path("go.work")}, govulncheck, database, found, together...); err != nil {
		return err
	}
	if n, fixed := standard(found); n > 0 {
		fmt.Fprintf(w, "      NOTICE: %d known vulnerabilities in the library of %s; build with %s or later\n", n, runtime.Version(), fixed)
	}
	return unaccepted(found, entries, time.Now()).errorOrNil()
}

// standard returns how many vulnerabilities are in packages of Go's own library that are compiled, and the Go release
// that has none of them.
func standard(found map[vulnerability]details) (n int, fixed string) {
	ids := map[string]bool{}
	for v, d := range found {
		if !d.standard {
			continue
		}
		ids[v.id] = true
		if release := strings.Replace(d.fixed, "v", "go", 1); version.Compare(release, fixed) > 0 {
			fixed = release
		}
	}
	return len(ids), fixed
}

// vulnerabilityDatabase returns the folder of the database in the layout that govulncheck reads, in the cache.
func vulnerabilityDatabase(ctx context.Context, ws *workspace.Workspace) (_ string, err error) {
	limited, cancel := context.WithTimeout(ctx, databaseLimit)
	defer cancel()
	output, err := ws.Command(limited, databaseTool, []string{"GOWORK=off"}, "go", "mod", "download", "-json", databaseModule).Output()
	var module struct{ Version, Dir, Error string }
	if unmarshalled := json.Unmarshal(output, &module); unmarshalled == nil && module.Error != "" {
		return "", errors.New(module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", databaseModule, err)
	}
	cache, err := workspace.CacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "vulnerabilities", module.Version)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "new-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := run(ctx, ws, ".", nil, "tools/run", "indexdb", "-vulns", filepath.Join(module.Dir, "data", "osv"), "-out", scratch); err != nil {
		return "", err
	}
	if err := os.Rename(scratch, folder); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return folder, nil
}

func toolPath(ctx context.Context, ws *workspace.Workspace, name string) (string, error) {
	output, err := ws.Command(ctx, ".", nil, ws.Path("tools/run"), "-path", name).Output()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// scan adds the vulnerabilities of packages that are compiled.
func scan(ctx context.Context, ws *workspace.Workspace, name, dir string, env []string, govulncheck, database string, found map[vulnerability]details, packages ...string) error {
	args := append([]string{"-format", "json", "-scan", "package", "-db", "file://" + filepath.ToSlash(database)}, packages...)
	cmd := ws.Command(ctx, dir, env, govulncheck, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: govulncheck: %w: %s", name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return readFindings(bytes.NewReader(output), name, found)
}

// readFindings reads what govulncheck prints with -format json.
func readFindings(r io.Reader, in string, found map[vulnerability]details) error {
	summaries := map[string]string{}
	for decoder := json.NewDecoder(r); ; {
		var message struct {
			OSV *struct {
				ID      string `json:"id"`
				Summary string `json:"summary"`
			} `json:"osv"`
			Finding *struct {
				OSV   string `json:"osv"`
				Fixed string `json:"fixed_version"`
				Trace []struct {
					Module  string `json:"module"`
					Package string `json:"package"`
				} `json:"trace"`
			} `json:"finding"`
		}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what govulncheck prints: %w", err)
		}
		if message.OSV != nil {
			summaries[message.OSV.ID] = message.OSV.Summary
		}
		f := message.Finding
		// A trace without a package is about a module that is required.
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Package == "" {
			continue
		}
		key, module := vulnerability{f.OSV, in}, f.Trace[0].Module
		// One vulnerability may be in Go's library and in a module that has a copy: the module counts.
		if old, is := found[key]; is && (!old.standard || module == standardLibrary) {
			continue
		}
		fixed := module + "@" + f.Fixed
		if module == standardLibrary {
			fixed = f.Fixed
		}
		found[key] = details{summaries[f.OSV], f.Trace[0].Package, fixed, module == standardLibrary}
	}
}

// standardLibrary is the name of Go's own library in the output of govulncheck.
const standardLibrary = "stdlib"

// unaccepted returns the vulnerabilities outside of Go's own library that have no entry, and entries without a reason,
// a future date or a finding.
func unaccepted(found map[vulnerability]details, entries []accepted, now time.Time) Findings {
	var faults Findings
	left := maps.Clone(found)
	maps.DeleteFunc(left, func(_ vulnerability, d details) bool { return d.standard })
	for _, entry := range entries {
		name := fmt.Sprintf("%s: %s", vulnerabilitiesFile, strings.Join(entry.IDs, ", "))
		until, err := time.Parse(time.DateOnly, entry.Until)
		switch {
		case len(entry.IDs) == 0 || len(entry.In) == 0 || entry.Why == "" || err != nil:
			faults = append(faults, name+": needs ids, in (where), a reason (why) and a date (until: 2006-01-02)")
		case !now.Before(until.AddDate(0, 0, 1)):
			faults = append(faults, fmt.Sprintf("%s was accepted until %s", name, entry.Until))
		}
		for _, id := range entry.IDs {
			for _, in := range entry.In {
				if d, is := found[vulnerability{id, in}]; !is || d.standard {
					faults = append(faults, fmt.Sprintf("%s: %s is not found any more in %s; delete it from the entry", vulnerabilitiesFile, id, in))
				}
				delete(left, vulnerability{id, in})
			}
		}
	}
	order := func(a, b vulnerability) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.in, b.in)) }
	for _, v := range slices.SortedFunc(maps.Keys(left), order) {
		d := left[v]
		faults = append(faults, fmt.Sprintf("%s: %s: package %s in %s; fixed in %s", v.id, d.summary, d.pkg, v.in, d.fixed))
	}
	return faults
}
