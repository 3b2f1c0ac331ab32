// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
)

// Stable reasons of results.
const (
	reasonNoEvidence = "the check found no object to check"
	reasonUndetected = "controls with a wrong result: "
	reasonNoControl  = "no control is possible on this cluster, so it is unknown whether the check can fail"
	reasonIdle       = "given operators that have written no Lease, status or operand: "
	// ReasonInterrupted is that of a check that was running, or had to run, when the run was interrupted.
	ReasonInterrupted = "the run was interrupted before the check had finished"
)

// observer fills the input of a check: it has an act performed, or copies of Deployments of the state run.
type observer func(ctx context.Context, check catalogue.Check, in *catalogue.Input, stages []catalogue.Stage) error

// execute runs a check that applies, and its controls if it passes.
func execute(ctx context.Context, check catalogue.Check, in *catalogue.Input, observe observer) (result report.Result) {
	result = check.Result()
	defer func() {
		if ctx.Err() != nil && (result.Status == report.Failed || result.Status == report.Inconclusive) {
			// What did not follow in time might have.
			result.Status, result.Reason = report.Inconclusive, ReasonInterrupted
		}
	}()
	err := observe(ctx, check, in, allStages())
	if err == nil {
		result.Evidence, err = check.Run(in)
	}
	if err == nil && check.Figures != nil {
		result.Figures = check.Figures(in.Records)
	}
	switch {
	case isInconclusive(err):
		result.Status, result.Reason = report.Inconclusive, err.Error()
	case err != nil:
		result.Status, result.Reason = report.Failed, err.Error()
	case len(result.Evidence) == 0:
		result.Status, result.Reason = report.Inconclusive, reasonNoEvidence
	case !held(result.Evidence):
		result.Status = report.Failed
	default:
		result.Controls = runControls(ctx, check, in, observe)
		result.Status, result.Reason = statusOf(result.Controls)
	}
	return result
}

func isInconclusive(err error) bool {
	return errors.Is(err, catalogue.ErrInconclusive) || errors.Is(err, catalogue.ErrNotPerformed) || errors.Is(err, catalogue.ErrForbidden) || apierrors.IsForbidden(err)
}

func held(evidence []report.Evidence) bool {
	return !slices.ContainsFunc(evidence, func(e report.Evidence) bool { return !e.Held })
}

// runControls runs all controls in parallel and leaves out those that are not possible on this cluster.
func runControls(ctx context.Context, check catalogue.Check, in *catalogue.Input, observe observer) []report.Control {
	results := make([]*report.Control, len(check.Controls))
	var group errgroup.Group
	for i, control := range check.Controls {
		if control.Change == nil {
			continue
		}
		group.Go(func() error {
			if changed := in.DeepCopy(); control.Change(changed) {
				results[i] = runControl(ctx, check, control, changed, observe)
			}
			return nil
		})
	}
	_ = group.Wait()
	var made []report.Control
	for _, result := range results {
		if result != nil {
			made = append(made, *result)
		}
	}
	return made
}

// runControl evaluates a changed input. Acts are not performed again, and copies only perform the stage of the check.
func runControl(ctx context.Context, check catalogue.Check, control catalogue.Control, changed *catalogue.Input, observe observer) *report.Control {
	result := &report.Control{Name: control.Name, Want: "fail"}
	if control.MustPass {
		result.Want = "pass"
	}
	if why := check.Excluded(changed.State); why != "" {
		result.Got = "not applicable: " + why
		return result
	}
	var err error
	if len(check.Copies) > 0 {
		err = observe(ctx, check, changed, []catalogue.Stage{check.Stage})
	}
	var evidence []report.Evidence
	if err == nil {
		evidence, err = check.Run(changed)
	}
	switch {
	case err != nil:
		// An error does not prove that the check can fail.
		result.Got = err.Error()
	case control.MustPass:
		result.Detected = held(evidence) && len(evidence) > 0
		result.Got = report.FirstFailure(evidence)
	default:
		result.Detected = !held(evidence)
	}
	if result.Detected {
		result.Got = ""
	} else if result.Got == "" {
		result.Got = "it passed"
	}
	return result
}

// idleReason returns why an operator that was given for the run makes the check inconclusive, or "".
func idleReason(ctx context.Context, check catalogue.Check, idleOperators func(context.Context) ([]string, error)) string {
	if idleOperators == nil {
		return ""
	}
	idle, err := idleOperators(ctx)
	if err != nil {
		return err.Error()
	}
	if check.Module != catalogue.Topology {
		idle = slices.DeleteFunc(idle, func(module string) bool { return module != check.Module })
	}
	if len(idle) == 0 {
		return ""
	}
	return reasonIdle + strings.Join(idle, ", ")
}

// statusOf requires a negative and a positive control, and that all have the expected result.
func statusOf(controls []report.Control) (report.Status, string) {
	var wrong []string
	seen := map[string]bool{}
	for _, control := range controls {
		seen[control.Want] = true
		if !control.Detected {
			wrong = append(wrong, control.Name)
		}
	}
	switch {
	case len(wrong) > 0:
		return report.Inconclusive, reasonUndetected + strings.Join(wrong, "; ")
	case !seen["fail"] || !seen["pass"]:
		return report.Inconclusive, reasonNoControl
	default:
		return report.Passed, ""
	}
}
