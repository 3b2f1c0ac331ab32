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

const vulnerabilitiesFile = "hack/vulnerabilities.yaml"

// accepted is an entry of hack/vulnerabilities.yaml.
type accepted struct {
	IDs   []string `json:"ids"`
	Why   string   `json:"why"`
	Until string   `json:"until"` // 2006-01-02
}

// checkVulnerabilities runs govulncheck over the workspace. A package that is compiled counts, whether or not its
// vulnerable functions are called: a search for calls takes minutes and gigabytes. Go's own library does not count,
// because the Go release is a choice of the person who builds.
func checkVulnerabilities(ctx context.Context, r repo) (err error) {
	text, err := os.ReadFile(r.Path(vulnerabilitiesFile))
	if err != nil {
		return err
	}
	var entries []accepted
	if err := yaml.UnmarshalStrict(text, &entries); err != nil {
		return fmt.Errorf("%s: %w", vulnerabilitiesFile, err)
	}
	// The module proxy serves the reports of the Go vulnerability database, also where the database's host cannot be
	// reached. tools/indexdb requires their version, and writes the layout that govulncheck reads.
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	out, err := workspace.Output(r.Command(limited, "tools/indexdb", "env", "GOWORK=off", "go", "mod", "download", "-json", "golang.org/x/vulndb"))
	if err != nil {
		return fmt.Errorf("no vulnerability database: %w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	database, err := os.MkdirTemp("", "sno-vulnerabilities-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(database)) }()
	if err := r.run(ctx, ".", r.Path("tools/run"), "indexdb", "-vulns", filepath.Join(module.Dir, "data", "osv"), "-out", database); err != nil {
		return err
	}
	args := []string{"govulncheck", "-format", "json", "-scan", "package", "-db", "file://" + filepath.ToSlash(database)}
	for _, m := range r.modules {
		args = append(args, r.Path(m.Dir)+"/...")
	}
	// govulncheck requires a go.mod in the folder where it runs.
	if out, err = workspace.Output(r.Command(ctx, "hack", r.Path("tools/run"), args...)); err != nil {
		return err
	}
	found, err := readVulnerabilities(out)
	if err != nil {
		return err
	}
	return unaccepted(found, entries, time.Now()).orNil()
}

// readVulnerabilities returns descriptions by id from what govulncheck prints with -format json.
func readVulnerabilities(out []byte) (map[string]string, error) {
	summaries, found := map[string]string{}, map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var message struct {
			OSV     struct{ ID, Summary string }
			Finding struct {
				OSV   string
				Fixed string `json:"fixed_version"`
				Trace []struct{ Module, Package string }
			}
		}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what govulncheck prints: %w", err)
		}
		summaries[message.OSV.ID] = message.OSV.Summary
		f := message.Finding
		// A trace without a package is about a module that is required.
		if len(f.Trace) > 0 && f.Trace[0].Package != "" && f.Trace[0].Module != "stdlib" {
			found[f.OSV] = fmt.Sprintf("%s: package %s; fixed in %s@%s", summaries[f.OSV], f.Trace[0].Package, f.Trace[0].Module, f.Fixed)
		}
	}
}

// unaccepted returns the vulnerabilities that have no entry, and entries without a reason, a future date or a finding.
func unaccepted(found map[string]string, entries []accepted, now time.Time) (faults findings) {
	left := maps.Clone(found)
	for _, entry := range entries {
		name := fmt.Sprintf("%s: %s", vulnerabilitiesFile, strings.Join(entry.IDs, ", "))
		until, err := time.Parse(time.DateOnly, entry.Until)
		switch {
		case len(entry.IDs) == 0 || entry.Why == "" || err != nil:
			faults = append(faults, name+": needs ids, a reason (why) and a date (until: 2006-01-02)")
		case !now.Before(until.AddDate(0, 0, 1)):
			faults = append(faults, name+" was accepted until "+entry.Until)
		}
		for _, id := range entry.IDs {
			if _, is := found[id]; !is {
				faults = append(faults, fmt.Sprintf("%s: %s is not found any more; delete it", vulnerabilitiesFile, id))
			}
			delete(left, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		faults = append(faults, id+": "+left[id])
	}
	return faults
}
