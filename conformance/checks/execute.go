package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/conformance/report"
)

// Reasons of results that are stable texts.
const (
	reasonNoEvidence = "nothing was looked at: the check found no object that it is about"
	reasonUndetected = "a control was not detected, so that the check might not be able to fail: "
	reasonNoControl  = "no control could be made on this cluster, so that nothing shows that the check can fail"
)

// Execute does one check, and its controls where it holds.
func Execute(ctx context.Context, check Check, bench *Environment) (result report.Result) {
	started := time.Now()
	result = check.Result()
	defer func() { result.Seconds = time.Since(started).Seconds() }()
	if why := check.skipReason(bench); why != "" {
		result.Status, result.Reason = report.Skipped, why
		return result
	}
	if check.NotApplicable != nil {
		if why := check.NotApplicable(bench.State); why != "" {
			result.Status, result.Reason = report.NotApplicable, why
			return result
		}
	}
	evidence, err := check.Run(ctx, bench)
	result.Evidence = evidence
	if err == nil && check.Figures != nil {
		result.Figures = check.Figures(bench)
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
	result.Controls = check.runControls(ctx, bench)
	result.Status, result.Reason = statusOf(result.Controls)
	return result
}

// isInconclusive says that the cluster kept a check from looking, which says nothing about what it is to look at.
func isInconclusive(err error) bool {
	return errors.Is(err, ErrInconclusive) || errors.Is(err, ErrForbidden) || apierrors.IsForbidden(err)
}

// Result is the head of a result: what the catalogue knows.
func (c Check) Result() report.Result {
	return report.Result{
		ID: c.ID, Title: c.Title, Module: c.Module, Level: string(c.Level), Tier: string(c.Tier), Requirement: c.Requirement.String(), Status: report.Skipped,
	}
}

// without says what the run was not given that the check needs.
func (c Check) skipReason(bench *Environment) string {
	switch {
	case c.Tier == Scheduled && bench.Copier == nil, c.Tier == Disruptive && bench.Disruptor == nil:
		return "the " + string(c.Tier) + " tier was not asked for"
	case c.MissingInput != nil:
		return c.MissingInput(bench)
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

// control does every control at the same time. Those that cannot be made on this cluster are left out.
func (c Check) runControls(ctx context.Context, bench *Environment) []report.Control {
	results := make([]*report.Control, len(c.Controls))
	group, ctx := errgroup.WithContext(ctx)
	for i, control := range c.Controls {
		group.Go(func() error {
			changed := bench.copied()
			if control.Change(changed) {
				results[i] = c.runControl(ctx, control, changed)
			}
			return nil
		})
	}
	_ = group.Wait() // none of them returns an error
	var made []report.Control
	for _, result := range results {
		if result != nil {
			made = append(made, *result)
		}
	}
	return made
}

func (c Check) runControl(ctx context.Context, control Control, changed *Environment) *report.Control {
	result := &report.Control{Name: control.Name, Want: "red"}
	if control.MustPass {
		result.Want = "green"
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
		// Not being able to look is no detection.
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
		result.Got = "it held"
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

// judge is passed only when a control that must be red was, one that must be green was, and none went the other way.
func statusOf(controls []report.Control) (report.Status, string) {
	var missed []string
	seen := map[string]bool{}
	for _, control := range controls {
		seen[control.Want] = true
		if !control.Detected {
			missed = append(missed, control.Name)
		}
	}
	switch {
	case len(missed) > 0:
		return report.Inconclusive, reasonUndetected + strings.Join(missed, "; ")
	case !seen["red"] || !seen["green"]:
		return report.Inconclusive, reasonNoControl
	default:
		return report.Passed, ""
	}
}

// Validate reports what is wrong with a catalogue: ids that are missing, doubled or of another shape, checks without controls both ways.
func Validate(checks []Check) error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range checks {
		if !idShape.MatchString(c.ID) || seen[c.ID] {
			errs = append(errs, fmt.Errorf("check %q: the id is missing, doubled or not of the shape %s", c.ID, idShape))
		}
		seen[c.ID] = true
		red, green := 0, 0
		for _, control := range c.Controls {
			if control.MustPass {
				green++
			} else {
				red++
			}
		}
		if red == 0 || green == 0 {
			errs = append(errs, fmt.Errorf("check %s: it needs a control that turns it red and one that does not", c.ID))
		}
		if c.Title == "" || c.Module == "" || c.Requirement.ID == "" || c.Requirement.Sentence == "" || c.Level == "" || c.Tier == "" || c.Run == nil {
			errs = append(errs, fmt.Errorf("check %s: title, module, requirement, level, tier and a way to look are needed", c.ID))
		}
	}
	return errors.Join(errs...)
}
