// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

func newPlan(p *program) *cobra.Command {
	command := newCommand("plan", "Print the changes of each module, field by field", `
Print every field that a module would set, already owns, or may not change, with its current owner and the reason.

Nothing is written or sent as a dry run, so read permissions suffice; with --must-gather no cluster is needed. Defaults and admission of
the API server are not included; see diff.`, `
		# One module, with full values
		kubectl sno plan --modules ingress -o wide
		# From a must-gather, as if conflicts were forced
		kubectl sno plan --must-gather ./must-gather.local.123 --force-conflicts
		# Only the objects that would be written
		kubectl sno plan -o name`, p.bindOutput, p.bindModules, p.bindMustGather, p.bindForce)
	command.RunE = p.printPlans(p.planAnswer)
	return command
}

func (p *program) bindForce(command *cobra.Command) {
	command.Flags().BoolVar(&p.force, "force-conflicts", false,
		"Take over fields that another manager owns. Their values are remembered, and restored on release.")
}

func (p *program) printPlans(format func([]plan.Module) answer) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		chosen, err := p.selectedModules()
		if err != nil {
			return err
		}
		return p.read(command, func(from rehearsal.Base, _ client.Client) error {
			planned, err := p.plans(command.Context(), from, chosen, plan.Options{ForceConflicts: p.force})
			if err != nil {
				return err
			}
			return p.print(format(planned))
		})
	}
}

func (p *program) plans(ctx context.Context, from rehearsal.Base, modules []controller.Module, options plan.Options) ([]plan.Module, error) {
	defer p.progress("")
	var all []plan.Module
	for i, m := range modules {
		p.progress(fmt.Sprintf("Planning %s (%d/%d)", m.Name(), i+1, len(modules)))
		each, err := plan.Compute(ctx, from, m, options)
		if err != nil {
			return nil, err
		}
		all = append(all, each)
	}
	return all, nil
}

func (p *program) planAnswer(planned []plan.Module) answer {
	t := table("MODULE", "OBJECT", "FIELD", "LIVE", "DESIRED", "OWNER", "VERDICT", "WHY")
	var names []string
	for _, m := range planned {
		for _, r := range m.Rows {
			live, desired := r.Live, r.Desired
			if p.output.format != "wide" {
				live, desired = shorten(live), shorten(desired)
			}
			row(t, m.Module, r.Object, r.Field, live, desired, r.Owner, r.Verdict, r.Why)
			if writes(r.Verdict) && !slices.Contains(names, r.Object) {
				names = append(names, r.Object)
			}
		}
	}
	return answer{kind: "Plan", value: map[string]any{"modules": planned}, names: names, table: t}
}

// writes reports whether the verdict is a write. The state of a module is none.
func writes(v plan.Verdict) bool {
	return slices.Contains([]plan.Verdict{plan.Own, plan.Set, plan.Remove, plan.Create, plan.Delete}, v)
}

func shorten(value string) string {
	const most = 40
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return value
}

// moduleStatus counts the fields of one module. Owners own them now.
type moduleStatus struct {
	Module  string   `json:"module"`
	State   string   `json:"state"`
	Reason  string   `json:"reason"`
	InForce int      `json:"fieldsInForce"`
	ToWrite int      `json:"changesToMake"`
	Blocked int      `json:"fieldsBlocked"`
	Owners  []string `json:"owners"`
	Objects []string `json:"objects"`
	Message string   `json:"message"`
}

func newStatus(p *program) *cobra.Command {
	command := newCommand("status", "Print the state of each module: in force, to write, blocked, and by whom", `
Print for each module its state, how many fields it owns, would write, or may not change because another manager owns them, and what to
do about that. Nothing is written. plan prints the single fields.`, `
		# With objects and owners of the fields
		kubectl sno status -o wide
		# For a script
		kubectl sno status -o jsonpath='{range .modules[*]}{.module}={.state}{"\n"}{end}'`, p.bindOutput, p.bindModules, p.bindMustGather)
	command.RunE = p.printPlans(statusAnswer)
	return command
}

func statusOf(m plan.Module) moduleStatus {
	s := moduleStatus{Module: m.Module, State: m.State, Reason: m.Reason, Message: m.Message, Objects: []string{}}
	owners := sets.New[string]()
	for _, r := range m.Rows {
		switch {
		case r.Verdict == plan.InForce:
			s.InForce++
		case r.Verdict == plan.Blocked:
			s.Blocked++
		case writes(r.Verdict):
			s.ToWrite++
		default:
			continue // the module's state in words
		}
		if !slices.Contains(s.Objects, r.Object) {
			s.Objects = append(s.Objects, r.Object)
		}
		owners.Insert(strings.Split(r.Owner, ",")...)
	}
	s.Owners = sets.List(owners.Delete(ownership.None))
	return s
}

func statusAnswer(planned []plan.Module) answer {
	t := table("MODULE", "STATE", "REASON", "IN FORCE", "TO WRITE", "BLOCKED", "OBJECTS+", "OWNERS+", "MESSAGE")
	all := []moduleStatus{}
	var names []string
	for _, m := range planned {
		s := statusOf(m)
		all = append(all, s)
		names = append(names, "module/"+s.Module)
		row(t, s.Module, s.State, s.Reason, s.InForce, s.ToWrite, s.Blocked,
			cmp.Or(strings.Join(s.Objects, ","), ownership.None), cmp.Or(strings.Join(s.Owners, ","), ownership.None), s.Message)
	}
	return answer{kind: "Status", value: map[string]any{"modules": all}, names: names, table: t}
}
