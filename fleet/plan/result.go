// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/overview"
)

const controllers = fleet.Namespace

// Names of feedback values.
const (
	valueMessage     = "message"
	valueExitCode    = "exitCode"
	valueWaiting     = "waiting"
	valueUnscheduled = "unscheduled"
	valuePhase       = "phase"
	valueReason      = "reason"
)

// Result returns the plan that a spoke has reported and whether it is final. A plan that is not
// final has in Refused what the spoke waits for.
func Result(work *workv1.ManifestWork) (overview.Plan, bool) {
	plan := overview.Plan{Cluster: work.Namespace}
	refused := func(format string, args ...any) (overview.Plan, bool) {
		plan.Refused = fmt.Sprintf(format, args...)
		return plan, true
	}
	text, exitCode := map[string]string{}, int64(-1)
	for _, m := range work.Status.ResourceStatus.Manifests {
		if m.ResourceMeta.Resource != "pods" || m.ResourceMeta.Name != Name {
			continue
		}
		for _, v := range m.StatusFeedbacks.Values {
			switch {
			case v.Value.String != nil:
				text[v.Name] = *v.Value.String
			case v.Name == valueExitCode && v.Value.Integer != nil:
				exitCode = *v.Value.Integer
			}
		}
	}
	notApplied := feedback.Read(work).NotApplied
	switch {
	case text[valueMessage] != "":
		changes, err := parse(text[valueMessage])
		if err != nil {
			return refused("%v", err)
		}
		plan.Changes = changes
		return plan, true
	case exitCode >= 0:
		return refused("the Pod of the plan ended with exit code %d and no message; an image before this version has no `fleet report-plan`", exitCode)
	case text[valuePhase] == "Failed":
		return refused("the Pod of the plan failed: %s", cmp.Or(text[valueReason], "no reason"))
	case len(notApplied) > 0: // the agent tries again
		plan.Refused = "the work agent could not apply " + strings.Join(notApplied, "; ")
	case len(work.Status.ResourceStatus.Manifests) == 0:
		plan.Refused = "the work agent has not applied the ManifestWork"
	default:
		plan.Refused = "the Pod of the plan is " + cmp.Or(text[valueWaiting], text[valueUnscheduled], text[valuePhase], "not there")
	}
	return plan, false
}
