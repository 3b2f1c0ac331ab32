// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// Execute runs a check, and its controls if it passes.
func Execute(ctx context.Context, check Check, in *Input) (result report.Result) {
	started := time.Now()
	result = check.Result()
	defer func() {
		result.Seconds = time.Since(started).Seconds()
		if ctx.Err() != nil && (result.Status == report.Failed || result.Status == report.Inconclusive) {
			// What did not follow in time might have.
			result.Status, result.Reason = report.Inconclusive, ReasonInterrupted
		}
	}()
	if why := check.skipReason(in); why != "" {
		result.Status, result.Reason = report.Skipped, why
		return result
	}
	if check.NotApplicable != nil {
		if why := check.NotApplicable(in.State); why != "" {
			result.Status, result.Reason = report.NotApplicable, why
			return result
		}
	}
	if why := check.idleReason(ctx, in); why != "" {
		result.Status, result.Reason = report.Inconclusive, why
		return result
	}
	evidence, err := check.Run(ctx, in)
	result.Evidence = evidence
	if err == nil && check.Figures != nil {
		result.Figures = check.Figures(in)
	}
	switch {
	case isInconclusive(err):
		result.Status, result.Reason = report.Inconclusive, err.Error()
		return result
	case err != nil:
		result.Status, result.Reason = report.Failed, err.Error()
		return result
	case len(evidence) == 0:
		result.Status, result.Reason = report.Inconclusive, reasonNoEvidence
		return result
	case !held(evidence):
		result.Status = report.Failed
		return result
	}
	result.Controls = check.runControls(ctx, in)
	result.Status, result.Reason = statusOf(result.Controls)
	return result
}

// idleReason returns why an operator that was given for the run makes the check inconclusive, or "".
func (c Check) idleReason(ctx context.Context, in *Input) string {
	if in.IdleOperators == nil {
		return ""
	}
	idle, err := in.IdleOperators(ctx)
	if err != nil {
		return err.Error()
	}
	if c.Module != moduleTopology {
		idle = slices.DeleteFunc(idle, func(module string) bool { return module != c.Module })
	}
	if len(idle) == 0 {
		return ""
	}
	return reasonIdle + strings.Join(idle, ", ")
}

func isInconclusive(err error) bool {
	return errors.Is(err, ErrInconclusive) || errors.Is(err, ErrNotPerformed) || errors.Is(err, ErrForbidden) || apierrors.IsForbidden(err)
}

// Result returns a skipped result with the fields of the catalogue.
func (c Check) Result() report.Result {
	return report.Result{
		ID: c.ID, Title: c.Title, Module: c.Module, Level: string(c.Level), Tier: string(c.Tier), Requirement: c.Requirement.String(), Status: report.Skipped,
	}
}

func (c Check) skipReason(in *Input) string {
	switch {
	case c.Tier == Scheduled && in.Copier == nil, c.Tier == Disruptive && in.Disruptor == nil:
		return "the " + string(c.Tier) + " tier was not selected"
	case c.MissingInput != nil:
		return c.MissingInput(in)
	default:
		return ""
	}
}

func held(evidence []report.Evidence) bool {
	for _, e := range evidence {
		if !e.Held {
			return false
		}
	}
	return true
}

// runControls runs all controls in parallel and leaves out those that are not possible on this cluster.
func (c Check) runControls(ctx context.Context, in *Input) []report.Control {
	results := make([]*report.Control, len(c.Controls))
	group, ctx := errgroup.WithContext(ctx)
	for i, control := range c.Controls {
		group.Go(func() error {
			if control.Change == nil {
				return nil
			}
			changed := in.copied()
			if control.Change(changed) {
				results[i] = c.runControl(ctx, control, changed)
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

func (c Check) runControl(ctx context.Context, control Control, changed *Input) *report.Control {
	result := &report.Control{Name: control.Name, Want: "fail"}
	if control.MustPass {
		result.Want = "pass"
	}
	if c.NotApplicable != nil {
		if why := c.NotApplicable(changed.State); why != "" {
			result.Got = "not applicable: " + why
			return result
		}
	}
	evidence, err := c.Run(ctx, changed)
	switch {
	case err != nil:
		// An error does not prove that the check can fail.
		result.Got = err.Error()
	case control.MustPass:
		result.Detected = held(evidence) && len(evidence) > 0
		result.Got = failureMessage(evidence)
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

func failureMessage(evidence []report.Evidence) string {
	for _, e := range evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	return ""
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

// Validate returns what is wrong with a catalogue.
func Validate(checks []Check) error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range checks {
		if !idShape.MatchString(c.ID) || seen[c.ID] {
			errs = append(errs, fmt.Errorf("check %q: the id is missing, not unique or does not match %s", c.ID, idShape))
		}
		seen[c.ID] = true
		errs = append(errs, c.validateControls())
		if c.Title == "" || c.Module == "" || c.Requirement.ID == "" || c.Requirement.Sentence == "" || c.Level == "" || c.Tier == "" || c.Run == nil {
			errs = append(errs, fmt.Errorf("check %s: it needs title, module, requirement, level, tier and Run", c.ID))
		}
	}
	return errors.Join(errs...)
}

func (c Check) validateControls() error {
	var errs []error
	negative, positive, cluster := 0, 0, 0
	for _, control := range c.Controls {
		switch {
		case c.KindOf(control) == KindCluster:
			cluster++
			if control.MustPass || control.Name == "" {
				errs = append(errs, fmt.Errorf("check %s: control %q: one of kind %s needs a name and must fail", c.ID, control.Name, KindCluster))
			}
		case control.MustPass:
			positive++
		default:
			negative++
		}
	}
	if negative == 0 || positive == 0 {
		errs = append(errs, fmt.Errorf("check %s: it needs a negative and a positive control", c.ID))
	}
	if c.hasRecord() && cluster == 0 {
		errs = append(errs, fmt.Errorf("check %s: it evaluates a record, so it needs a control of kind %s", c.ID, KindCluster))
	}
	return errors.Join(errs...)
}
