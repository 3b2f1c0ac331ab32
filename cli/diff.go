// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
)

func newDiff(p *program) *cobra.Command {
	command := newCommand("diff", "Print the changes as the API server would make them", `
Print the difference between each object and the object that the API server would make of it, by a server-side dry run. Nothing is
written, but write permissions are needed. With --must-gather nothing is sent, and defaults of the API server are missing.

Values of Secrets are masked. The exit codes are those of kubectl diff: 0 without differences, 1 with differences, 2 for an error.`, `
		# One module, for a script
		kubectl sno diff --modules ingress >/dev/null || echo "not in force"
		# From a must-gather
		kubectl sno diff --must-gather ./must-gather.local.123`, p.bindModules, p.bindMustGather, p.bindForce)
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := p.selectedModules()
		if err != nil {
			return err
		}
		differs := false
		err = p.read(command, func(from rehearsal.Base, server client.Client) error {
			planned, err := p.plans(command.Context(), from, chosen, plan.Options{ForceConflicts: p.force, Server: server})
			for _, m := range planned {
				if m.Result.State == patch.Failed && err == nil {
					err = fmt.Errorf("%s: %w: %s", m.Module, errFailed, m.Message)
				}
				for _, w := range m.Writes {
					text, diffErr := unified(w)
					if diffErr != nil {
						return diffErr
					}
					differs = differs || text != ""
					printColored(p.Out, text)
				}
			}
			return err
		})
		if err == nil && differs {
			return exitError
		}
		return err
	}
	return command
}

func unified(w rehearsal.Write) (string, error) {
	before, err := manifest(w.Before, w.After, "*** (before)")
	if err != nil {
		return "", err
	}
	after, err := manifest(w.After, w.Before, "*** (after)")
	name := plan.NameOf(cmp.Or(w.After, w.Before))
	return udiff.Unified("live/"+name, "merged/"+name, before, after), err
}

// manifest returns the YAML of an object without bookkeeping. Values of Secrets are masked as by kubectl diff: with
// changed if they differ from the other object.
func manifest(object, other *unstructured.Unstructured, changed string) (string, error) {
	if object == nil {
		return "", nil
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	if strings.HasPrefix(string(object.GetUID()), rehearsal.UIDPrefix) {
		object.SetUID("")
	}
	if object.GetKind() == "Secret" {
		mask(object.Object, other, changed)
	}
	text, err := yaml.Marshal(object.Object)
	return string(text), err
}

func mask(secret map[string]any, other *unstructured.Unstructured, changed string) {
	for _, field := range []string{"data", "stringData"} {
		values, isMap := secret[field].(map[string]any)
		if !isMap {
			delete(secret, field)
		}
		for name, value := range values {
			values[name] = "***"
			if other == nil {
				continue
			}
			if theirs, both, _ := unstructured.NestedString(other.Object, field, name); both && theirs != value {
				values[name] = changed
			}
		}
	}
}

func printColored(out io.Writer, text string) {
	colored := isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	colors := map[byte]string{'@': "36", '-': "31", '+': "32"}
	for line := range strings.Lines(text) {
		if color := colors[line[0]]; colored && color != "" {
			line = "\x1b[" + color + "m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n"
		}
		fmt.Fprint(out, line)
	}
}
