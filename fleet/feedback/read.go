// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// State is the state of a module on a spoke.
type State struct {
	Module string `json:"module"`
	// InForce reports whether the patch is in force, Settled whether nothing is left to do, for the module or a person:
	// it is in force and the operand follows, or it is not needed, or opted out.
	InForce bool `json:"inForce"`
	Settled bool `json:"settled"`
	Failing bool `json:"failing"`
	// Reason is empty as long as the module has reported nothing.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when the patch began, or ceased, to be in force.
	Since *time.Time `json:"since,omitempty"`
}

// Report is what the ManifestWorks of a spoke report.
type Report struct {
	Modules []State // those whose objects the spoke reads, sorted by name
	// Images are those of the controllers, sorted.
	Images   []string
	Rollouts []Rollout // sorted by module
	// ControlPlane, Infrastructure and Workers are what kind of cluster the spoke is; empty and nil if not reported.
	ControlPlane, Infrastructure string
	Workers                      *int64
	// Installing is nil unless sno-install is installing the cluster.
	Installing *Installing
	// NotApplied has the messages about manifests that the work agent could not apply or read, sorted.
	NotApplied []string
}

// Module returns the state of a module, nil if the spoke does not read its object.
func (r Report) Module(name string) *State {
	for i := range r.Modules {
		if r.Modules[i].Module == name {
			return &r.Modules[i]
		}
	}
	return nil
}

// Read returns what ManifestWorks of one spoke report. A spoke that is away has reported it before.
func Read(works ...*workv1.ManifestWork) Report {
	var r Report
	for _, work := range works {
		if work == nil {
			continue
		}
		for _, m := range work.Status.ResourceStatus.Manifests {
			r.read(m)
		}
	}
	slices.SortFunc(r.Modules, func(a, b State) int { return cmp.Compare(a.Module, b.Module) })
	slices.SortFunc(r.Rollouts, func(a, b Rollout) int { return cmp.Compare(a.Module, b.Module) })
	slices.Sort(r.Images)
	r.Images = slices.Compact(r.Images)
	slices.Sort(r.NotApplied)
	return r
}

func (r *Report) read(m workv1.ManifestCondition) {
	for _, c := range m.Conditions {
		if c.Type == workv1.ManifestApplied && c.Status == metav1.ConditionFalse {
			r.NotApplied = append(r.NotApplied, strings.TrimSpace(m.ResourceMeta.Kind+" "+m.ResourceMeta.Name+": "+c.Message))
		}
	}
	id := workv1.ResourceIdentifier{
		Group: m.ResourceMeta.Group, Resource: m.ResourceMeta.Resource, Namespace: m.ResourceMeta.Namespace, Name: m.ResourceMeta.Name,
	}
	values := m.StatusFeedbacks.Values
	switch {
	case id == infrastructure:
		r.ControlPlane, r.Infrastructure = text(values, valueControlPlane), text(values, valueInfra)
		return
	case id == installation && text(values, valueStatus) == "installing":
		r.Installing = &Installing{Phase: text(values, valuePhase), Message: text(values, valueMessage)}
		return
	case id == workerPool:
		for _, v := range values {
			if v.Name == valueWorkers {
				r.Workers = v.Value.Integer
			}
		}
		return
	case id.Group == controllers.Group && id.Resource == controllers.Resource && id.Namespace == controllers.Namespace:
		if image := text(values, valueImage); image != "" {
			r.Images = append(r.Images, image)
		}
		if rollout := rollout(m); rollout != nil {
			r.Rollouts = append(r.Rollouts, *rollout)
		}
		return
	}
	for _, module := range byResource[id] {
		r.Modules = append(r.Modules, module.state(values))
	}
}

// byResource has the modules of an object.
var byResource = func() map[workv1.ResourceIdentifier][]Module {
	all := map[workv1.ResourceIdentifier][]Module{}
	for _, m := range Modules() {
		all[m.Resource] = append(all[m.Resource], m)
	}
	return all
}()

// state returns the state of the module that feedback values report.
func (m Module) state(values []workv1.FeedbackValue) State {
	is := func(name string) bool { return text(values, name) == string(metav1.ConditionTrue) }
	s := State{
		Module: m.Name, InForce: is(valueInForce), Failing: is(valueFailing),
		Reason: text(values, valueReason), Message: text(values, valueMessage),
	}
	s.Settled = text(values, valueInProgress) == string(metav1.ConditionFalse) && (s.InForce || slices.Contains(m.Settled, s.Reason))
	if since, err := time.Parse(time.RFC3339, text(values, valueSince)); err == nil {
		s.Since = &since
	}
	return s
}

func text(values []workv1.FeedbackValue, name string) string {
	for _, v := range values {
		if v.Name == name && v.Value.String != nil {
			return *v.Value.String
		}
	}
	return ""
}
