// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/fleet/manifests"
)

var errImage = errors.New("every controller has an image of its own")

func newRender(p *program) *cobra.Command {
	var image string
	var current, policies bool
	command := newCommand("render", "Print the manifests that install the controllers", `
Print the manifests that install the controllers: one Deployment for all, or one for each of the named modules. An account has the rights
of the modules that it runs, and may change only the fields that they patch: an API server before Kubernetes 1.30, on OpenShift before 4.17,
needs --admission-policies=false. No cluster is needed.

Without --image the images are ko references to programs of the repository of sno, for ko apply.`, `
		# All controllers in one process
		kubectl sno render --image registry.example.com/kubectl-sno:v1 | kubectl apply --server-side -f -
		# Those that have something to do on OpenShift 4.8 and later, in one process
		kubectl sno render --current --image registry.example.com/kubectl-sno:v1 | kubectl apply --server-side -f -
		# Two controllers, each in a Deployment of its own
		kubectl sno render --modules ingress,auth --image registry.example.com/{module}-controller:v1
		# Built and pushed from a clone of the repository
		kubectl sno render | ko apply -f -`)
	command.Flags().StringSliceVar(&p.modules, "modules", nil,
		"Comma-separated modules, one Deployment each; by default one Deployment for all: "+strings.Join(p.moduleNames(), ", ")+".")
	command.Flags().StringVar(&image, "image", "", "The image of the controllers; "+manifests.Placeholder+" is replaced by the name of the module.")
	command.Flags().BoolVar(&current, "current", false,
		"One Deployment for the controllers that have something to do on OpenShift 4.8 and later, without the rights of the others.")
	command.Flags().BoolVar(&policies, "admission-policies", true, "With the ValidatingAdmissionPolicies of the accounts.")
	command.MarkFlagsMutuallyExclusive("current", "modules")
	complete(command, "modules", p.moduleNames()...)
	command.RunE = func(*cobra.Command, []string) error {
		if err := p.checkNames(); err != nil {
			return err
		}
		names, each := p.modules, strings.Contains(image, manifests.Placeholder)
		switch {
		case len(names) > 1 && image != "" && !each:
			return fmt.Errorf("%w: use %s in --image=%s", errImage, manifests.Placeholder, image)
		case len(names) == 0 && each:
			return fmt.Errorf("%w: --image=%s names a module, but all controllers are one process; set --modules", errImage, image)
		case current:
			names = []string{manifests.Current}
		case len(names) == 0:
			names = []string{manifests.All}
		}
		text, err := manifests.Render(image, policies, names...)
		fmt.Fprint(p.Out, text)
		return err
	}
	return command
}
