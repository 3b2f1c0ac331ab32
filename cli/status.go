package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/cli/plan"
)

// standing is how one module stands.
type standing struct {
	Module  string `json:"module"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	InForce int    `json:"fieldsInForce"`
	ToWrite int    `json:"changesToMake"`
	Blocked int    `json:"fieldsBlocked"`
	// Owners are who owns fields that the module has, or wants.
	Owners  []string `json:"owners"`
	Objects []string `json:"objects"`
	Message string   `json:"message"`
}

func newStatus(p *program) *cobra.Command {
	var mustGather string
	command := &cobra.Command{
		Use:   "status",
		Short: "Say whether each patch is in force, who owns what, and what is in the way",
		Long: `Say of each module whether its patch is in force, how many fields it owns, would change, or may not touch because somebody else owns them,
and what to do about that. Nothing is written; plan shows the single fields.`,
		Example: examples(`
			# All modules
			kubectl sno status
			# With the owners of the fields
			kubectl sno status -o wide
			# For a script
			kubectl sno status -o jsonpath='{range .modules[*]}{.module}={.state}{"\n"}{end}'`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	modules := newChoice(command, true)
	bindMustGather(command, &mustGather)
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := p.prepare(out, modules)
		if err != nil {
			return err
		}
		from, err := p.open(command, mustGather)
		if err != nil {
			return err
		}
		planned, err := p.plans(command.Context(), from.client, chosen, plan.Options{})
		if err == nil {
			err = out.print(p, statusAnswer(planned))
		}
		return from.finish(p, err)
	}
	return command
}

func standingOf(m plan.Module) standing {
	s := standing{Module: m.Module, State: m.State, Reason: m.Reason, Message: m.Message, Owners: []string{}, Objects: []string{}}
	for _, r := range m.Rows {
		switch {
		case r.Verdict == plan.InForce:
			s.InForce++
		case r.Verdict == plan.Blocked:
			s.Blocked++
		case writes(r.Verdict):
			s.ToWrite++
		default:
			continue // the module's own words
		}
		if !slices.Contains(s.Objects, r.Object) {
			s.Objects = append(s.Objects, r.Object)
		}
		for owner := range strings.SplitSeq(r.Owner, ",") {
			if owner != "-" && !slices.Contains(s.Owners, owner) {
				s.Owners = append(s.Owners, owner)
			}
		}
	}
	slices.Sort(s.Owners)
	return s
}

func statusAnswer(planned []plan.Module) answer {
	t := table("MODULE", "STATE", "REASON", "IN FORCE", "TO WRITE", "BLOCKED", "OBJECTS+", "OWNERS+", "MESSAGE")
	all := []standing{}
	var names []string
	for _, m := range planned {
		s := standingOf(m)
		all = append(all, s)
		names = append(names, "module/"+s.Module)
		row(t, s.Module, s.State, s.Reason, fmt.Sprint(s.InForce), fmt.Sprint(s.ToWrite), fmt.Sprint(s.Blocked),
			none(s.Objects), none(s.Owners), s.Message)
	}
	return answer{kind: "Status", value: &struct {
		Modules []standing `json:"modules"`
	}{all}, names: names, table: t}
}

func none(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}
