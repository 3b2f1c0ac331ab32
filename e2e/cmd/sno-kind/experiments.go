// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/solonode/sno/conformance/extension"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
)

// try runs experiments one after the other. One with its own cluster runs in parallel with the one before it.
func (o options) try(ctx context.Context, e *kindtarget.Env, chosen []kindtarget.Experiment) error {
	logf := func(format string, args ...any) { o.progress.logf(e.Kind.Name()+": "+format, args...) }
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		errs    []error
	)
	for _, experiment := range chosen {
		if !experiment.OwnCluster {
			running.Wait()
		}
		if ctx.Err() != nil {
			break
		}
		if experiment.Scenario != "" && experiment.Scenario != o.scenario {
			logf("Left out, because it needs -scenario %s: %s", experiment.Scenario, experiment.Name)
			continue
		}
		running.Go(func() {
			err := o.inTurn(ctx, experiment.Exclusive, func() error {
				logf("%s: %s", experiment.Name, experiment.Description)
				return experiment.Run(ctx, e)
			})
			if err == nil {
				logf("%s: passed", experiment.Name)
				return
			}
			if ctx.Err() != nil {
				return // interrupted
			}
			err = fmt.Errorf("%w: experiment %s: %w", errFailed, experiment.Name, err)
			logf("FAILED: %v", err)
			if o.out != "" {
				err = errors.Join(err, e.Logs(filepath.Join(o.out, "artifacts", experiment.Name)))
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	running.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// addToReport adds the figures to the report that the conformance suite has written.
func (o options) addToReport(rows []bench.Row) error {
	if o.noSuite {
		return nil
	}
	reports, err := report.ReadFiles(filepath.Join(o.out, "report.yaml"))
	if err != nil {
		return fmt.Errorf("add the figures to the report: %w", err)
	}
	done := reports[0]
	for _, row := range rows {
		done.Measurements = append(done.Measurements, report.Measurement(row))
	}
	return extension.WriteFolder(o.out, done)
}

// figure prints the measurements of the experiments, and writes them into the report and the document.
func (o options) figure(chosen []kindtarget.Experiment) error {
	if o.out == "" {
		return nil
	}
	var rows []bench.Row
	for _, experiment := range chosen {
		text, err := os.ReadFile(filepath.Join(o.figures(), experiment.Name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was not measured
		} else if err != nil {
			return fmt.Errorf("read the figures: %w", err)
		}
		var its []bench.Row
		if err := json.Unmarshal(text, &its); err != nil {
			return fmt.Errorf("read the figures of %s: %w", experiment.Name, err)
		}
		rows = append(rows, its...)
	}
	if len(rows) == 0 {
		return nil
	}
	if err := bench.Print(os.Stdout, rows); err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	if err := o.addToReport(rows); err != nil {
		return err
	}
	if o.write == "" {
		return nil
	}
	before, err := os.ReadFile(o.write)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	after, err := bench.RealKubelets.Document(before, rows, bench.Machine(), true)
	if err != nil {
		return fmt.Errorf("write the figures into %s: %w", o.write, err)
	}
	return os.WriteFile(o.write, after, 0o644) //nolint:gosec,wrapcheck // a document; complete
}
