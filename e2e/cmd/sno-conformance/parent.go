// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/matrix"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
)

// childEnvironment trades memory for time.
const childEnvironment = "GOGC=400"

// captions describe the variants in the HTML report.
var captions = map[embeddedtarget.Variant]string{
	embeddedtarget.SNO: "with the modules", embeddedtarget.Vendored: "operators that vendor the modules", embeddedtarget.Baseline: "stock operators or stand-ins for them",
}

// parent runs every scenario in a child and writes the results.
func parent(ctx context.Context, o options) error {
	in, err := o.inputs()
	if err != nil {
		return err
	}
	folder, err := o.folder()
	if err != nil {
		return err
	}
	if err := build(ctx, o.variant, o.operators); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if o.parallel == 0 {
		o.parallel = matrix.Capacity()
	}
	started := time.Now()
	fmt.Fprintf(os.Stderr, "%d clusters, %d at a time; logs are in %s\n", len(o.scenarios), o.parallel, folder)
	reports, err := matrix.Run{
		Scenarios: o.scenarios, Parallel: o.parallel, Limit: o.limit, Folder: folder, Lost: o.lost, Progress: os.Stderr,
		Command: func(name, folder string) *exec.Cmd {
			cmd := exec.Command(self, append([]string{
				"-child", "-variant=" + string(o.variant), "-scenarios=" + name, "-tiers=" + join(o.tiersOf(name)), "-out=" + folder,
				"-modules=" + strings.Join(o.modules, ","), fmt.Sprintf("-keep=%t", o.keep), fmt.Sprintf("-real-min-ready=%t", o.realMinReady),
			}, o.operatorFlags.Arguments()...)...)
			cmd.Env = append(os.Environ(), childEnvironment)
			return cmd
		},
	}.All(ctx)
	if err != nil && !errors.Is(err, matrix.ErrInterrupted) {
		return err
	}
	fmt.Fprintf(os.Stderr, "All done after %s\n", time.Since(started).Round(100*time.Millisecond))
	unused := report.Apply(reports, in.waivers, time.Now())
	for why, waivers := range map[string][]report.Waiver{"expired": unused.Expired, "unused": unused.Stale} {
		for _, w := range waivers {
			fmt.Fprintf(os.Stderr, "The waiver of %s %s is %s\n", w.ID, w.Scenario, why)
		}
	}
	// Reports are also written after an interruption.
	err = errors.Join(err, write(folder, o.variant, reports, in.before), matrix.WriteTable(os.Stdout, reports))
	if err != nil {
		return err
	}
	if o.expect != "" {
		return in.expected.Compare(reports)
	}
	if err := report.Verdict(reports); err != nil {
		return fmt.Errorf("%w: see above", firstLine(err))
	}
	return nil
}

// tiersOf returns the tiers of a cluster.
func (o options) tiersOf(name string) []catalogue.Tier {
	if slices.Contains(o.disrupted, name) {
		return o.tiers
	}
	return slices.DeleteFunc(slices.Clone(o.tiers), func(t catalogue.Tier) bool { return t == catalogue.Disruptive })
}

// firstLine returns the kind of an error, without the details that the table has.
func firstLine(err error) error {
	for _, kind := range []error{report.ErrFailed, report.ErrNothingChecked} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// inputs are files that are read first.
type inputs struct {
	expected matrix.Expectations
	waivers  []report.Waiver
	before   []report.Report
}

func (o options) inputs() (inputs, error) {
	var e inputs
	var ids []string
	for _, c := range catalogue.All() {
		ids = append(ids, c.ID)
	}
	var errs []error
	var err error
	if o.expect != "" {
		e.expected, err = matrix.ReadExpectations(o.expect, ids, allScenarios())
		errs = append(errs, err)
	}
	if o.waiver != "" {
		e.waivers, err = report.ReadWaivers(o.waiver, ids)
		errs = append(errs, err)
	}
	if o.before != "" {
		if e.before, err = report.ReadFiles(o.before); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return e, fmt.Errorf("%w: %w", errInput, err)
	}
	return e, nil
}

// build builds everything once for all children.
func build(ctx context.Context, variant embeddedtarget.Variant, operators harness.Operators) error {
	if _, err := assets.Ensure(ctx, os.Stderr); err != nil {
		return fmt.Errorf("get the programs of the clusters: %w", err)
	}
	needed, err := variant.Programs(operators)
	if err != nil {
		return err
	}
	for _, program := range needed {
		if _, err := programs.Build(ctx, program, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// write writes the reports.
func write(folder string, variant embeddedtarget.Variant, reports, before []report.Report) error {
	page := report.HTML{Title: "Single-node conformance", Reports: reports, Before: before, Caption: captions[variant]}
	if len(before) > 0 {
		page.BeforeCaption = captions[embeddedtarget.Variant(before[0].Variant)]
	}
	var errs []error
	for name, encode := range map[string]func(io.Writer) error{
		"report.yaml": func(w io.Writer) error { return report.WriteYAML(w, reports...) },
		"report.json": func(w io.Writer) error { return report.WriteJSON(w, reports...) },
		"junit.xml":   func(w io.Writer) error { return report.WriteJUnit(w, reports...) },
		"report.md":   func(w io.Writer) error { return report.WriteMarkdown(w, reports...) },
		"report.html": func(w io.Writer) error { return report.WriteHTML(w, page) },
	} {
		errs = append(errs, writeFile(filepath.Join(folder, name), encode))
	}
	return errors.Join(errs...)
}

func writeFile(path string, encode func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	if err := errors.Join(encode(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func join(tiers []catalogue.Tier) string {
	var names []string
	for _, t := range tiers {
		names = append(names, string(t))
	}
	return strings.Join(names, ",")
}
