// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

var (
	errFailed = errors.New("failed")
	errDryRun = errors.New("unknown --dry-run")
)

// outcomeRow is the outcome for one object, or the state of a module that wrote nothing.
type outcomeRow struct {
	Module  string `json:"module"`
	Object  string `json:"object"`
	Outcome string `json:"outcome"`
	State   string `json:"state"`
	Message string `json:"message"`
}

func newApply(p *program) *cobra.Command {
	command := newCommand("apply", "Apply the changes once", `
Apply the changes that plan prints, once and by server-side apply. Fields that are as desired are not written, so a second run writes
nothing.

Only the controllers keep the changes in force afterwards (see run). Drain requests of nodes are not handled.

With a machine-config operator, a change of the graceful shutdown restarts the node at once; --graceful-shutdown=off changes nothing there.`, `
		# What would be written
		kubectl sno apply --dry-run=server
		# Two modules, also where another manager owns a field
		kubectl sno apply --modules ingress,console --force-conflicts`, p.bindOutput, p.bindModules, p.bindDryRun, p.bindForce)
	command.RunE = func(command *cobra.Command, _ []string) error { return p.applyOrRelease(command.Context(), false) }
	return command
}

func newRelease(p *program) *cobra.Command {
	annotation := patch.OptOutAnnotation
	command := newCommand("release MODULE...", "Release everything that a module owns", `
Release every field that a module owns: values that it took over are restored to their former owners, other fields are left to the
defaults of the API or to their other owners. The conditions of its controller are removed.

A controller that still runs patches again, and so does the next apply. To opt an object out permanently, set the annotation
`+annotation+` to the module's name; then the controller itself releases the object.`, `
		# What would be released
		kubectl sno release ingress --dry-run=server
		# Opt out while a controller runs
		kubectl -n openshift-ingress-operator annotate ingresscontroller default `+annotation+`=ingress`, p.bindOutput, p.bindModuleFlags, p.bindDryRun)
	command.Args = cobra.MinimumNArgs(1)
	command.ValidArgsFunction = cobra.FixedCompletions(p.moduleNames(), cobra.ShellCompDirectiveNoFileComp)
	command.RunE = func(command *cobra.Command, args []string) error {
		p.modules = args
		if err := p.applyOrRelease(command.Context(), true); err != nil {
			return err
		}
		if p.dryRun == "none" {
			fmt.Fprintln(p.ErrOut, "A controller that still runs patches again; the annotation "+annotation+" opts an object out.")
		}
		return nil
	}
	return command
}

func (p *program) bindDryRun(command *cobra.Command) {
	command.Flags().StringVar(&p.dryRun, "dry-run", "none",
		`Must be "none", "server", or "client". With client nothing is sent; with server writes are server-side dry runs.`)
	complete(command, "dry-run", "none", "server", "client")
}

// applyOrRelease handles the modules one after the other; a module that fails does not stop the others.
func (p *program) applyOrRelease(ctx context.Context, releasing bool) error {
	chosen, err := p.selectedModules()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"none", "client", "server"}, p.dryRun) {
		return fmt.Errorf(`%w=%s; use "none", "server" or "client"`, errDryRun, p.dryRun)
	}
	cluster, err := p.connect()
	if err != nil {
		return err
	}
	kind, outcome := "Apply", "applied"
	if releasing {
		kind, outcome = "Release", "released"
	}
	all, names := []outcomeRow{}, []string{}
	t := table("MODULE", "OBJECT", "OUTCOME", "STATE", "MESSAGE")
	add := func(item outcomeRow) {
		all = append(all, item)
		row(t, item.Module, item.Object, item.Outcome, item.State, item.Message)
	}
	var failures []error
	for i, m := range chosen {
		p.progress(fmt.Sprintf("Writing %s (%d/%d)", m.Name(), i+1, len(chosen)))
		writes, result, err := p.write(ctx, cluster, m, releasing)
		if err != nil {
			failures = append(failures, err)
			break
		}
		if result.State == patch.Failed || releasing && result.State == patch.Blocked {
			failures = append(failures, fmt.Errorf("%s: %w: %s", m.Name(), errFailed, plan.Message(result)))
		}
		item := outcomeRow{m.Name(), ownership.None, "unchanged", result.State.String(), plan.Message(result)}
		for _, w := range writes {
			item.Object, item.Outcome = plan.NameOf(cmp.Or(w.After, w.Before)), outcome
			if w.After == nil {
				item.Outcome = "deleted"
			}
			if p.dryRun != "none" {
				item.Outcome += " (" + p.dryRun + " dry run)"
			}
			if !slices.Contains(all, item) {
				add(item)
				names = append(names, item.Object)
			}
		}
		if len(writes) == 0 {
			add(item)
		}
	}
	p.progress("")
	failures = append(failures, p.print(answer{kind: kind, value: map[string]any{"items": all}, names: names, table: t}))
	return errors.Join(failures...)
}

// write runs one module, or plans it in a dry run. A release also removes the conditions of its controller.
func (p *program) write(ctx context.Context, cluster client.Client, m controller.Module, releasing bool) ([]rehearsal.Write, patch.Result, error) {
	if p.dryRun != "none" {
		options := plan.Options{ForceConflicts: p.force, Release: releasing}
		if p.dryRun == "server" {
			options.Server = cluster
		}
		planned, err := plan.Compute(ctx, cluster, m, options)
		return planned.Writes, planned.Result, err
	}
	out, err := plan.Reconcile(ctx, cluster, m, controller.Options{ForceConflicts: p.force}, releasing)
	if err != nil || !releasing || out.Target == nil {
		return out.Writes, out.Result, err
	}
	owner := patch.FieldOwner(m.Name())
	if own, err := ownership.Applied(out.Target, owner, "status"); err != nil || own.Empty() {
		return out.Writes, out.Result, err
	}
	intent := &unstructured.Unstructured{}
	intent.SetGroupVersionKind(out.Target.GroupVersionKind())
	intent.SetName(out.Target.GetName())
	intent.SetNamespace(out.Target.GetNamespace())
	intent.SetUID(out.Target.GetUID())
	if err := cluster.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(owner)); err != nil {
		return out.Writes, out.Result, fmt.Errorf("releasing the conditions of %s: %w", plan.NameOf(out.Target), err)
	}
	return append(out.Writes, rehearsal.Write{After: out.Target}), out.Result, nil
}
