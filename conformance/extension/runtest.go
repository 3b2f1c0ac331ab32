// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
				out.put(unknown(name, p.Now()), nil)
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
	target, stop, err := cluster.connect(ctx, p, checks, artifactFolder())
	defer stop()
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
