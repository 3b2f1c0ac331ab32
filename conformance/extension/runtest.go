// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
)

type testFlags struct {
	cluster clusterFlags
	output  string
}

func (t *testFlags) bind(flags *pflag.FlagSet) {
	t.cluster.bind(flags)
	flags.StringVarP(&t.output, "output", "o", formatJSON, "json, printed at the end, or jsonl, one line for each finished test")
	flags.IntP("max-concurrency", "c", 0, "accepted without an effect")
}

func (p Program) runTest() *cobra.Command {
	var t testFlags
	var names []string
	var timeout time.Duration
	c := contract(&cobra.Command{
		Use: "run-test [-n NAME]... [NAME]", Short: "Run tests by name; names are also read from a pipe, one a line", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			piped, err := pipedNames(p.In)
			if err != nil {
				return err
			}
			names := slices.Concat(names, args, piped)
			if len(names) == 0 {
				return errors.New("no test given: use -n NAME; `sno-tests list tests -o names` prints the names")
			}
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			out, err := newSink(p.Out, t.output)
			if err != nil {
				return err
			}
			checks, unknownNames := p.checksByName(names)
			for _, name := range unknownNames {
				out.put(unknown(name, p.Now()))
			}
			if len(checks) == 0 {
				return verdict(out, nil)
			}
			_, err = p.test(ctx, &t.cluster, checks, out)
			return verdict(out, err)
		},
	})
	t.bind(c.Flags())
	c.Flags().StringArrayVarP(&names, "names", "n", nil, "name of a test, as printed by `list`; may be repeated")
	c.Flags().DurationVar(&timeout, "timeout", 0, "limit for all tests together; 0 for none")
	return c
}

// test runs checks and returns a result for each, also if the cluster could not be reached.
func (p Program) test(ctx context.Context, cluster *clusterFlags, checks []catalogue.Check, out *sink) (report.Report, error) {
	answered := map[string]bool{}
	put := func(f finished) {
		answered[f.check.ID] = true
		out.put(line(f))
		fmt.Fprintf(p.Err, "%s %s\n", f.result.Status, f.check.Text())
	}
	var done report.Report
	target, err := cluster.connect(ctx, p, checks, artifactFolder())
	if err == nil {
		done, err = execution{Program: p, target: target, checks: checks, artifacts: artifactFolder(), each: put}.run(ctx)
	}
	if err == nil {
		return done, nil
	}
	for _, check := range checks {
		if answered[check.ID] {
			continue
		}
		result := check.Result()
		result.Status, result.Reason = report.Failed, err.Error()
		if ctx.Err() != nil {
			result.Status = report.Inconclusive
		}
		put(finished{check: check, result: result, ended: p.Now()})
	}
	return done, err
}

// verdict ends the output. It contains all results already, so an error of the run is only printed.
func verdict(out *sink, err error) error {
	if err := errors.Join(out.end(), err); err != nil {
		return fmt.Errorf("%w: %w", errFailed, err)
	}
	if out.hasBlockingFailure() {
		return errFailed
	}
	return nil
}

// artifactFolder returns the folder that origin configures. Its code and its enhancement use different names.
func artifactFolder() string {
	return cmp.Or(os.Getenv("EXTENSION_ARTIFACT_DIR"), os.Getenv("EXTENSION_ARTIFACTS_DIR"))
}

func (p Program) runSuite() *cobra.Command {
	var t testFlags
	var junit, html string
	c := contract(&cobra.Command{
		Use: "run-suite NAME", Short: "Run the tests of a suite", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			checks, err := p.inSuite(args[0])
			if err != nil {
				return err
			}
			out, err := newSink(p.Out, t.output)
			if err != nil {
				return err
			}
			done, err := p.test(c.Context(), &t.cluster, checks, out)
			if len(done.Results) > 0 {
				err = errors.Join(err, writeFile(junit, done, encoders[".xml"]), writeFile(html, done, encoders[".html"]))
			}
			return verdict(out, err)
		},
	})
	t.bind(c.Flags())
	c.Flags().StringVarP(&junit, "junit-path", "j", "", "file for a JUnit report")
	c.Flags().StringVar(&html, "html-path", "", "file for an HTML report")
	return c
}

// pipedNames reads names, one a line, unless the input is a terminal or /dev/null.
func pipedNames(in io.Reader) ([]string, error) {
	if in == nil {
		return nil, nil
	}
	if file, ok := in.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("read the standard input: %w", err)
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return nil, nil
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read the standard input: %w", err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// checksByName returns the checks in the catalogue's order, and the unknown names, each once: origin rejects a second
// result.
func (p Program) checksByName(names []string) (checks []catalogue.Check, unknownNames []string) {
	known := map[string]bool{}
	for _, check := range p.Catalogue {
		name := check.Name()
		known[name] = true
		if slices.Contains(names, name) {
			checks = append(checks, check)
		}
	}
	for _, name := range names {
		if !known[name] && !slices.Contains(unknownNames, name) {
			unknownNames = append(unknownNames, name)
		}
	}
	return checks, unknownNames
}

// line converts a result to the contract. Inconclusive checks have failed there.
func line(f finished) testResult {
	started := f.ended.Add(-time.Duration(f.result.Seconds * float64(time.Second)))
	r := testResult{
		Name: f.check.Name(), Lifecycle: lifecycle(f.check),
		Duration:  f.ended.Sub(started).Milliseconds(),
		StartTime: started.UTC().Format(timeLayout), EndTime: f.ended.UTC().Format(timeLayout),
		Result: outcome(f.result), Output: f.result.Text(), Error: f.result.FailureMessage(),
	}
	for _, d := range []struct {
		name  string
		value any
		some  bool
	}{
		{"status", f.result.Status, true},
		{"reason", f.result.Reason, f.result.Reason != ""},
		{"evidence", f.result.Evidence, len(f.result.Evidence) > 0},
		{"controls", f.result.Controls, len(f.result.Controls) > 0},
		{"figures", f.result.Figures, len(f.result.Figures) > 0},
	} {
		if d.some {
			r.Details = append(r.Details, detail{Name: d.name, Value: d.value})
		}
	}
	return r
}

func outcome(result report.Result) string {
	switch {
	case result.FailureMessage() != "":
		return failed
	case result.Status == report.Passed:
		return passed
	default:
		return skipped
	}
}

// unknown returns a blocking failure for a name that no test has, because the caller expects a result.
func unknown(name string, now time.Time) testResult {
	at := now.UTC().Format(timeLayout)
	why := fmt.Sprintf("unknown test %q: `sno-tests list tests -o names` prints the names", name)
	return testResult{Name: name, Lifecycle: blocking, StartTime: at, EndTime: at, Result: failed, Output: why, Error: why}
}
