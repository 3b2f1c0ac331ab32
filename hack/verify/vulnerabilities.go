// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
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
	ID    string `json:"id"`
	Why   string `json:"why"`
	Until string `json:"until"` // 2006-01-02
}

// vulnerability is one whose functions a module calls.
type vulnerability struct{ summary, fixed, call string }

// checkVulnerabilities runs govulncheck over all modules or none: the first one takes most of the time. Without the
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
	found := map[string]vulnerability{}
	var together []string
	for _, m := range ws.WithCode() {
		if m.InWork {
			together = append(together, "./"+m.Dir+"/...")
			continue
		}
		if err := scan(ctx, ws, m.Dir, workspace.Standalone(), govulncheck, database, found, "./..."); err != nil {
			return err
		}
	}
	if err := scan(ctx, ws, ".", []string{"GOWORK=" + ws.Path("go.work")}, govulncheck, database, found, together...); err != nil {
		return err
	}
	return unaccepted(found, entries, time.Now()).errorOrNil()
}

// vulnerabilityDatabase returns the folder of the database in the layout that govulncheck reads, in the cache.
func vulnerabilityDatabase(ctx context.Context, ws *workspace.Workspace) (string, error) {
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
	defer os.RemoveAll(scratch)
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

// scan adds the vulnerabilities whose functions the packages call.
func scan(ctx context.Context, ws *workspace.Workspace, dir string, env []string, govulncheck, database string, found map[string]vulnerability, packages ...string) error {
	args := append([]string{"-format", "json", "-test", "-db", "file://" + filepath.ToSlash(database)}, packages...)
	cmd := ws.Command(ctx, dir, env, govulncheck, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: govulncheck: %w: %s", dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return readFindings(bytes.NewReader(output), found)
}

// readFindings reads what govulncheck prints with -format json.
func readFindings(r io.Reader, found map[string]vulnerability) error {
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
					Module   string `json:"module"`
					Package  string `json:"package"`
					Function string `json:"function"`
					Receiver string `json:"receiver"`
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
		// A trace without a function is about a module or a package that is required and not called.
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" {
			continue
		}
		caller := f.Trace[len(f.Trace)-1]
		found[f.OSV] = vulnerability{
			summary: summaries[f.OSV], fixed: f.Trace[0].Module + "@" + f.Fixed,
			call: fmt.Sprintf("%s.%s calls %s.%s", caller.Package, caller.Function, f.Trace[0].Package, f.Trace[0].Function),
		}
	}
}

// unaccepted returns the vulnerabilities without an entry, and the entries without a reason, a future date or a
// finding.
func unaccepted(found map[string]vulnerability, entries []accepted, now time.Time) Findings {
	var faults Findings
	left := maps.Clone(found)
	for _, entry := range entries {
		until, err := time.Parse(time.DateOnly, entry.Until)
		switch _, is := found[entry.ID]; {
		case entry.Why == "" || err != nil:
			faults = append(faults, fmt.Sprintf("%s: %s: needs a reason (why) and a date (until: 2006-01-02)", vulnerabilitiesFile, entry.ID))
		case !is:
			faults = append(faults, fmt.Sprintf("%s: %s is not found any more; delete the entry", vulnerabilitiesFile, entry.ID))
		case !now.Before(until.AddDate(0, 0, 1)):
			faults = append(faults, fmt.Sprintf("%s: %s was accepted until %s", vulnerabilitiesFile, entry.ID, entry.Until))
		}
		delete(left, entry.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		v := left[id]
		faults = append(faults, fmt.Sprintf("%s: %s: %s; fixed in %s", id, v.summary, v.call, v.fixed))
	}
	return faults
}
