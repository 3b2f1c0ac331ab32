// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

// errNotCleanedUp is returned if the deletion of the run's objects failed.
var errNotCleanedUp = errors.New("objects of the run may remain on the cluster")

type finished struct {
	check  catalogue.Check
	result report.Result
	ended  time.Time
}

type execution struct {
	Program
	target    cluster.Target
	checks    []catalogue.Check
	artifacts string
	// each is called for every finished check, never concurrently.
	each func(finished)

	runner runner.Running
}

func (e execution) run(ctx context.Context) (done report.Report, err error) {
	if e.runner, err = e.Connect(ctx, e.target, runner.Only(e.checks)); err != nil {
		return report.Report{}, err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	if err := e.runner.Start(ctx); err != nil {
		return report.Report{}, err
	}
	nonDisruptive, disruptive := runner.Split(e.checks)
	e.collectResults(ctx, nonDisruptive)
	for _, check := range disruptive {
		e.collectResults(ctx, []catalogue.Check{check})
	}
	if ctx.Err() != nil {
		return report.Report{}, fmt.Errorf("the run was interrupted: %w", context.Cause(ctx))
	}
	done = e.runner.Report()
	done.Tool = e.Build.String()
	return done, nil
}

// collectResults waits for checks that run in parallel. After the last one it collects artifacts once, if a check
// failed.
func (e execution) collectResults(ctx context.Context, checks []catalogue.Check) {
	ended := make(chan finished)
	for _, check := range checks {
		go func() { ended <- e.result(ctx, check) }()
	}
	failedID := ""
	for range checks {
		f := <-ended
		e.each(f)
		if f.result.FailureMessage() != "" && (failedID == "" || f.check.ID < failedID) {
			failedID = f.check.ID
		}
	}
	if failedID != "" {
		e.collectArtifacts(ctx, failedID)
	}
}

func (e execution) result(ctx context.Context, check catalogue.Check) finished {
	result, err := e.runner.Result(ctx, check.ID)
	if err != nil {
		result = check.Result()
		result.Status, result.Reason = report.Failed, err.Error()
	}
	return finished{check: check, result: result, ended: e.Now()}
}

func (e execution) collectArtifacts(ctx context.Context, id string) {
	if e.artifacts == "" || ctx.Err() != nil {
		return
	}
	folder := filepath.Join(e.artifacts, id)
	if err := e.runner.Collect(ctx, folder); err != nil {
		fmt.Fprintf(e.Err, "collect artifacts into %s: %v\n", folder, err)
	}
}

// close works after an interruption too.
func (e execution) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.target.Times.Cleanup)
	defer cancel()
	if err := e.runner.Close(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotCleanedUp, err)
	}
	return nil
}
