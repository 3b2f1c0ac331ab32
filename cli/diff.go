package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
)

// diffVerb is the verb with exit codes of its own.
const diffVerb = "diff"

func newDiff(p *program) *cobra.Command {
	var mustGather string
	var options plan.Options
	command := &cobra.Command{
		Use:   diffVerb,
		Short: "Show what the API server would make of the changes",
		Long: `Show the objects that would be written as they are and as the API server would make them, by a server-side dry run. Nothing is written,
but the right to write is needed. With --must-gather there is no API server to ask, and what it would add is missing.

What is in Secrets is masked. Exit codes are those of kubectl diff: 0 without differences, 1 with differences, more after an error.`,
		Example: examples(`
			# Everything that would change on this cluster
			kubectl sno diff
			# One module; the exit code tells whether there is something to do
			kubectl sno diff --modules ingress >/dev/null || echo "not in force"
			# Offline
			kubectl sno diff --must-gather ./must-gather.local.123`),
		Args: cobra.NoArgs,
	}
	modules := newChoice(command, true)
	bindMustGather(command, &mustGather)
	bindForce(command, &options.ForceConflicts)
	command.RunE = func(command *cobra.Command, _ []string) error {
		differs, err := p.diff(command, modules, mustGather, options)
		if err == nil && differs {
			return exit{code: exitError}
		}
		return err
	}
	return command
}

func (p *program) diff(command *cobra.Command, modules *choice, mustGather string, options plan.Options) (bool, error) {
	chosen, err := modules.chosen()
	if err != nil {
		return false, err
	}
	from, err := p.open(command, mustGather)
	if err != nil {
		return false, err
	}
	if from.gathered == nil {
		options.Server = from.client
	}
	planned, err := p.plans(command.Context(), from.client, chosen, options)
	differs := false
	for _, m := range planned {
		if m.Result.State == patch.Failed && err == nil {
			err = fmt.Errorf("%s: %w: %s", m.Module, errFailed, m.Message)
		}
		for _, w := range m.Writes {
			text, diffErr := unified(w)
			if diffErr != nil {
				return false, diffErr
			}
			differs = differs || text != ""
			paint(p.Out, text)
		}
	}
	return differs, from.finish(p, err)
}

// unified is the difference that the write makes, in the format of diff -u.
func unified(w rehearsal.Write) (string, error) {
	before, after := bare(w.Before), bare(w.After)
	mask(before, after)
	from, err := manifest(before)
	if err != nil {
		return "", err
	}
	to, err := manifest(after)
	if err != nil {
		return "", err
	}
	object := w.After
	if object == nil {
		object = w.Before
	}
	name := plan.NameOf(object)
	return udiff.Unified("live/"+name, "merged/"+name, from, to), nil
}

// bare is the object without what the API server counts; nil for none.
func bare(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	if strings.HasPrefix(string(object.GetUID()), "rehearsed-") {
		object.SetUID("")
	}
	return object
}

// mask hides the values of Secrets, as kubectl diff does: that one changes is shown, and neither from what nor to what.
func mask(before, after *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		from, to := closed(before, field), closed(after, field)
		for name, value := range from {
			if changed, both := to[name]; both && !reflect.DeepEqual(value, changed) {
				from[name], to[name] = "*** (before)", "*** (after)"
				continue
			}
			from[name] = "***"
		}
		for name, value := range to {
			if value != "*** (after)" {
				to[name] = "***"
			}
		}
	}
}

// closed are the values of a Secret, which are in the object from now on; nil of anything else. What has no such form is removed.
func closed(object *unstructured.Unstructured, field string) map[string]any {
	if object == nil || object.GetKind() != "Secret" {
		return nil
	}
	values, is := object.Object[field].(map[string]any)
	if !is {
		delete(object.Object, field)
	}
	return values
}

func manifest(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("printing %s: %w", plan.NameOf(object), err)
	}
	return string(text), nil
}

// paint writes a diff, in colours on a terminal.
func paint(out io.Writer, text string) {
	if !colorful(out) {
		fmt.Fprint(out, text)
		return
	}
	for line := range strings.Lines(text) {
		color := ""
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			color = "\x1b[1m"
		case strings.HasPrefix(line, "@@"):
			color = "\x1b[36m"
		case strings.HasPrefix(line, "-"):
			color = "\x1b[31m"
		case strings.HasPrefix(line, "+"):
			color = "\x1b[32m"
		}
		if color == "" {
			fmt.Fprint(out, line)
			continue
		}
		fmt.Fprint(out, color+strings.TrimSuffix(line, "\n")+"\x1b[0m\n")
	}
}
