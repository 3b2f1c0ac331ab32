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

// try runs experiments one after the other, and those on clusters of their own beside the one before them.
func (o options) try(ctx context.Context, e *kindtarget.Env, chosen []kindtarget.Experiment) error {
	say := func(format string, args ...any) { o.told.say(e.Kind.Name()+": "+format, args...) }
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
			say("Left out, because it needs -scenario %s: %s", experiment.Scenario, experiment.Name)
			continue
		}
		running.Go(func() {
			err := o.inTurn(ctx, experiment.Exclusive, func() error {
				say("%s: %s", experiment.Name, experiment.Description)
				return experiment.Run(ctx, e)
			})
			if err == nil {
				say("%s: it is so", experiment.Name)
				return
			}
			if ctx.Err() != nil {
				return // nobody wants to know any more
			}
			err = fmt.Errorf("%w: experiment %s: %w", errRed, experiment.Name, err)
			say("RED: %v", err)
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

// addToReport puts figures into the report of the conformance suite, which was written when they were not known.
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

// figure shows what the experiments have measured, and writes it into the document that was named.
func (o options) figure(chosen []kindtarget.Experiment) error {
	if o.out == "" {
		return nil
	}
	var rows []bench.Row
	for _, experiment := range chosen {
		text, err := os.ReadFile(filepath.Join(o.figures(), experiment.Name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it did not come so far
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
		return fmt.Errorf("show the figures: %w", err)
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
	return os.WriteFile(o.write, after, 0o644) //nolint:gosec,wrapcheck // a document; says it all
}
