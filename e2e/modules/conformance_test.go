// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/matrix"
	"github.com/solonode/sno/testcluster/scenario"
)

// captions describe the variants in names of specs and on the page, outcomes what must hold.
var (
	captions = map[embeddedtarget.Variant]string{
		embeddedtarget.SNO:      "with the modules",
		embeddedtarget.Vendored: "with operators that vendor the modules",
		embeddedtarget.Baseline: "with stand-ins for today's operators",
	}
	outcomes = map[embeddedtarget.Variant]string{
		embeddedtarget.SNO:      "every check passes",
		embeddedtarget.Vendored: "exactly the checks of vendored.yaml fail",
		embeddedtarget.Baseline: "exactly the checks of baseline.yaml fail",
	}
)

// smoke are the scenarios in `make e2e`: the one in which most checks differ from three nodes, and those three.
// disturbed is the one that is also disturbed.
var smoke = map[embeddedtarget.Variant][]string{
	embeddedtarget.SNO:      {disturbed, "ha"},
	embeddedtarget.Vendored: {"none-sno-day2-workers"},
	embeddedtarget.Baseline: {"none-sno-day2-workers"},
}

const disturbed = "none-sno-day2-workers"

// reportEntry is the name of the entry of Ginkgo's report that has the conformance report of a cluster.
const reportEntry = "conformance report"

var _ = Describe("The conformance suite", suite.First, func() {
	for _, variant := range embeddedtarget.Variants() {
		DescribeTable(captions[variant]+" "+outcomes[variant], check, entries(variant))
	}
})

var _ = ReportAfterSuite("write the reports", writeReports)

// entries has two entries for each scenario (R-SUITE-1, R-SUITE-5); the second has the disruptive tier.
func entries(variant embeddedtarget.Variant) []TableEntry {
	var all []TableEntry
	add := func(s scenario.Scenario, tiers string, disruptive bool) {
		labels := Label(string(variant), s.Name, tiers, "conformance")
		if slices.Contains(smoke[variant], s.Name) && disruptive == (variant == embeddedtarget.SNO && s.Name == disturbed) {
			labels = append(labels, suite.Smoke)
		}
		all = append(all, Entry(fmt.Sprintf("%s, %s: %s", s.Name, tiers, s.Description), labels, variant, s.Name, disruptive))
	}
	for _, s := range scenario.All() {
		add(s, "undisturbed", false)
		add(s, "disturbed", true)
	}
	return all
}

func selection(disruptive bool) runner.Selection {
	s := runner.Selection{Tiers: []catalogue.Tier{catalogue.Static, catalogue.Scheduled}}
	if *modulesFlag != "" {
		s.Modules = strings.Split(*modulesFlag, ",")
	}
	if disruptive {
		s.Tiers = catalogue.Tiers()
	}
	if *tiersFlag != "" {
		named := strings.Split(*tiersFlag, ",")
		s.Tiers = slices.DeleteFunc(s.Tiers, func(t catalogue.Tier) bool { return !slices.Contains(named, string(t)) })
	}
	return s
}

// check runs the suite on a new cluster and compares the results with those that are expected.
func check(ctx SpecContext, variant embeddedtarget.Variant, name string, disruptive bool) {
	folder := filepath.Join(suite.Out(), string(variant), name)
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	log := suite.Must(os.Create(filepath.Join(folder, "run.log")))
	DeferCleanup(log.Close)
	limited, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("it took longer than %s", *limit))
	defer cancel()
	found, err := run(limited, variant, name, selection(disruptive), folder, log)
	if err != nil {
		found = lost(variant, name, selection(disruptive), ctx.Err(), errors.Join(err, context.Cause(limited)))
	}
	text, encoding := json.Marshal(found)
	Expect(encoding).NotTo(HaveOccurred())
	AddReportEntry(reportEntry, string(text), ReportEntryVisibilityNever) // a string is the same in every process
	counts := make([]string, 0, len(report.Statuses()))
	for _, status := range report.Statuses() {
		counts = append(counts, fmt.Sprintf("%d %s", found.Counts[status], status))
	}
	GinkgoWriter.Println(strings.Join(counts, ", "))
	if err == nil {
		err = verdict(variant, found)
	}
	if err != nil {
		Fail(fmt.Sprintf("%v\nThe log of the run and, after a failed check, artifacts are in %s", err, folder))
	}
}

// run runs the selected checks. Failed checks are not an error.
func run(ctx context.Context, variant embeddedtarget.Variant, name string, chosen runner.Selection, folder string, log io.Writer) (found report.Report, err error) {
	given, err := operators.Read()
	if err != nil {
		return found, err
	}
	options := embeddedtarget.Options{
		Scenario: name, Variant: variant, Operators: given, RealMinReadySeconds: *realMinReady, Keep: suite.Keep(), Progress: log, Times: cluster.SimulatedTimes(),
	}
	if *realMinReady || len(given.Modules()) > 0 {
		// The router is rolled out several times after a change of the topology, by a given operator at its own speed.
		options.Times.Converge = cluster.RealTimes().Converge
	}
	s, err := embeddedtarget.Start(ctx, options)
	if err != nil {
		return found, err
	}
	defer s.Stop()
	started, err := runner.New(ctx, s.Target(), chosen)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, started.Close(ctx)) }()
	if err := started.Start(ctx); err != nil {
		return found, err
	}
	for _, c := range catalogue.All() {
		result, err := started.Result(ctx, c.ID)
		if err != nil {
			return found, err
		}
		_, _ = fmt.Fprintf(log, "%s  %s  %-13s %6.1f s  %s\n", time.Now().Format(time.TimeOnly), result.ID, result.Status, result.Seconds, result.Title)
	}
	found = started.Report()
	if found.Counts[report.Failed]+found.Counts[report.Inconclusive] > 0 {
		if err := started.Collect(ctx, filepath.Join(folder, "artifacts")); err != nil {
			_, _ = fmt.Fprintln(log, "The artifacts are not complete:", err)
		}
	}
	return found, nil
}

// lost returns the report of a cluster whose run has ended with an error, or was interrupted.
func lost(variant embeddedtarget.Variant, name string, chosen runner.Selection, interrupted, err error) report.Report {
	r := report.Report{Scenario: name, Variant: string(variant), Provider: embeddedtarget.Provider, Started: time.Now().UTC()}
	if s, err := scenario.Lookup(name); err == nil {
		r.Description = s.Description
	}
	if given, err := operators.Read(); err == nil {
		r.Operators, _ = variant.Operators(name, given) // both names are valid
	}
	status := report.Failed
	if interrupted != nil {
		status = report.Inconclusive
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	selected, _ := runner.Select(catalogue.All(), chosen) // the run before has selected them too
	for _, c := range catalogue.All() {
		result := c.Result()
		result.Reason = "it was not selected"
		if slices.ContainsFunc(selected, func(s catalogue.Check) bool { return s.ID == c.ID }) {
			result.Status, result.Reason = status, reason
		}
		r.Results = append(r.Results, result)
	}
	r.Count()
	return r
}

// verdict returns an error if other checks have failed than may.
func verdict(variant embeddedtarget.Variant, found report.Report) error {
	if variant == embeddedtarget.SNO {
		waivers, err := waivers()
		if err != nil {
			return err
		}
		reports := []report.Report{found}
		report.Apply(reports, waivers, time.Now())
		return report.Verdict(reports) //nolint:wrapcheck // names the checks
	}
	expected, err := matrix.ReadExpectations(filepath.Join("e2e", "matrix", string(variant)+".yaml"), ids(), names())
	if err != nil {
		return err
	}
	return expected.Compare([]report.Report{found})
}

func waivers() ([]report.Waiver, error) {
	if *waiversFlag == "" {
		return nil, nil
	}
	return report.ReadWaivers(*waiversFlag, ids()) //nolint:wrapcheck // names the file
}

func ids() (all []string) {
	for _, c := range catalogue.All() {
		all = append(all, c.ID)
	}
	return all
}

func names() (all []string) {
	for _, s := range scenario.All() {
		all = append(all, s.Name)
	}
	return all
}

// writeReports writes the reports of each variant and prints a table of all. An interrupted run has them too.
func writeReports(all Report) {
	reports := map[embeddedtarget.Variant][]report.Report{}
	for _, spec := range all.SpecReports {
		for _, entry := range spec.ReportEntries {
			if entry.Name != reportEntry {
				continue
			}
			var r report.Report
			Expect(json.Unmarshal(fmt.Append(nil, entry.GetRawValue()), &r)).To(Succeed(), spec.FullText())
			reports[embeddedtarget.Variant(r.Variant)] = append(reports[embeddedtarget.Variant(r.Variant)], r)
		}
	}
	known := suite.Must(waivers())
	for _, variant := range embeddedtarget.Variants() {
		of := reports[variant]
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b report.Report) int {
			return slices.Index(names(), a.Scenario) - slices.Index(names(), b.Scenario)
		})
		if variant == embeddedtarget.SNO {
			unused := report.Apply(of, known, time.Now())
			for why, waivers := range map[string][]report.Waiver{"expired": unused.Expired, "unused": unused.Stale} {
				for _, w := range waivers {
					GinkgoWriter.Printf("The waiver of %s %s is %s\n", w.ID, w.Scenario, why)
				}
			}
		}
		folder := filepath.Join(suite.Out(), string(variant))
		GinkgoWriter.Printf("\n%s; reports in %s\n", captions[variant], folder)
		Expect(matrix.WriteTable(GinkgoWriter, of)).To(Succeed())
		Expect(write(folder, variant, of)).To(Succeed())
	}
}

func write(folder string, variant embeddedtarget.Variant, reports []report.Report) error {
	page := report.HTML{Title: "Single-node conformance", Reports: reports, Caption: captions[variant]}
	earlier := *beforeFlag
	if earlier == "" && variant != embeddedtarget.Baseline {
		earlier = filepath.Join(suite.Out(), string(embeddedtarget.Baseline), "report.yaml")
	}
	if earlier != "" {
		before, err := report.ReadFiles(earlier)
		if err != nil && (*beforeFlag != "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("-before: %w", err)
		}
		if page.Before = before; len(before) > 0 {
			page.BeforeCaption = captions[embeddedtarget.Variant(before[0].Variant)]
		}
	}
	var errs []error
	for name, encode := range map[string]func(io.Writer) error{
		"report.yaml": func(w io.Writer) error { return report.WriteYAML(w, reports...) },
		"report.json": func(w io.Writer) error { return report.WriteJSON(w, reports...) },
		"junit.xml":   func(w io.Writer) error { return report.WriteJUnit(w, reports...) },
		"report.html": func(w io.Writer) error { return report.WriteHTML(w, page) },
	} {
		file, err := os.Create(filepath.Join(folder, name))
		if err == nil {
			err = errors.Join(encode(file), file.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
