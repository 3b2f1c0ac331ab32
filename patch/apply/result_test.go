// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/patch"
)

var router = Messages{
	Subject: "The default IngressController", Creator: "the ingress operator", Resource: "ingresscontrollers", WouldApply: "the router would be pinned",
	ProgressingReason: "RouterRollingOut",
}

var ignoreMessage = cmpopts.IgnoreFields(patch.Result{}, "Message", "Err")

func TestFailed(t *testing.T) {
	resource := schema.GroupResource{Group: "operator.openshift.io", Resource: "ingresscontrollers"}
	for name, test := range map[string]struct {
		err   error
		want  patch.Result
		retry bool
	}{
		"gone":       {err: fmt.Errorf("x: %w", ErrGone), want: patch.Result{State: patch.Waiting, Reason: "WaitingForObject"}},
		"stale":      {err: fmt.Errorf("x: %w", ErrStale), want: patch.Result{State: patch.Progressing, Reason: "RouterRollingOut", After: time.Second}},
		"annotation": {err: fmt.Errorf("x: %w", patch.ErrReplacedAnnotation), want: patch.Result{State: patch.Failed, Reason: "Invalid"}},
		"forbidden": {err: fmt.Errorf("x: %w", apierrors.NewForbidden(resource, "default", nil)), want: patch.Result{State: patch.Failed,
			Reason: "Forbidden", After: time.Minute}},
		"unavailable": {err: fmt.Errorf("x: %w", apierrors.NewServiceUnavailable("down")), want: patch.Result{State: patch.Failed, Reason: "ApplyFailed"},
			retry: true},
		"other": {err: errors.New("x"), want: patch.Result{State: patch.Failed, Reason: "ApplyFailed"}, retry: true},
	} {
		got := *router.Failed("ingress", test.err)
		if diff := cmp.Diff(test.want, got, ignoreMessage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (got.Err != nil) != test.retry {
			t.Errorf("%s: retried with back-off: %v, want %v", name, got.Err != nil, test.retry)
		}
		if got.Message == "" || got.Message[0] < 'A' || got.Message[0] > 'Z' {
			t.Errorf("%s: message %q", name, got.Message)
		}
	}
}

func TestResult(t *testing.T) {
	for name, test := range map[string]struct {
		outcome Outcome
		err     error
		want    *patch.Result
		text    string
	}{
		"applied":   {outcome: Outcome{Kind: Applied}},
		"unchanged": {outcome: Outcome{Kind: Unchanged}},
		"dry run": {outcome: Outcome{Kind: WouldApply}, want: &patch.Result{State: patch.WouldChange, Reason: "DryRun"},
			text: "Dry run: the router would be pinned"},
		"conflict": {outcome: Outcome{Kind: Conflicted, Conflicts: []Conflict{{Field: ".spec.replicas", Manager: "oc"}}},
			want: &patch.Result{State: patch.Blocked, Reason: "FieldOwnedByOther"},
			text: `.spec.replicas is owned by "oc" and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts`},
		"reverted": {outcome: Outcome{Kind: Withheld, RetryAfter: 5 * time.Minute, RevertedBy: []string{"a", "b"}},
			want: &patch.Result{State: patch.Reverted, Reason: "Reverted", After: 5 * time.Minute},
			text: `The patch was reverted by "a", "b"; it is tried again later. To stop that, set the annotation sno.solonode.github.io/opt-out`},
		"reverted by an unknown client": {outcome: Outcome{Kind: Withheld, RetryAfter: time.Minute},
			want: &patch.Result{State: patch.Reverted, Reason: "Reverted", After: time.Minute},
			text: `The patch was reverted by another client; it is tried again later. To stop that, set the annotation sno.solonode.github.io/opt-out`},
		"refused": {outcome: Outcome{Kind: Failed}, err: errors.New("x"), want: &patch.Result{State: patch.Failed, Reason: "ApplyFailed"}},
	} {
		got := router.Result(t.Context(), "ingress", test.outcome, test.err)
		if diff := cmp.Diff(test.want, got, ignoreMessage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if test.text != "" && (got == nil || got.Message != test.text) {
			t.Errorf("%s: %v\nwant: %s", name, got, test.text)
		}
	}
}

func TestReleased(t *testing.T) {
	because := patch.Result{State: patch.NotNeeded, Reason: "NotNeeded", Message: "Two replicas"}
	for name, test := range map[string]struct {
		outcome Outcome
		err     error
		want    *patch.Result
	}{
		"released":  {outcome: Outcome{Kind: Released}},
		"unchanged": {outcome: Outcome{Kind: Unchanged}},
		"dry run": {outcome: Outcome{Kind: WouldRelease},
			want: &patch.Result{State: patch.WouldChange, Reason: "DryRun", Message: "Dry run: the patch would be released. Two replicas"}},
		"gone": {err: ErrGone, want: &patch.Result{State: patch.Waiting, Reason: "WaitingForObject",
			Message: "The default IngressController was deleted while it was patched; the ingress operator makes a new one"}},
	} {
		if diff := cmp.Diff(test.want, router.Released("ingress", because, test.outcome, test.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
