package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/cli/manifests"
)

// errImage is returned for an image that would be that of several programs.
var errImage = errors.New("every controller has an image of its own")

// modulePlaceholder stands in --image for the name of a module.
const modulePlaceholder = "{module}"

// builtHere is an image that is not built yet: ko's reference to a program of this repository.
var builtHere = regexp.MustCompile(`image: ko://\S+`)

func newRender(p *program) *cobra.Command {
	var names []string
	var image string
	command := &cobra.Command{
		Use:   "render",
		Short: "Print the manifests that install the controllers",
		Long: `Print the manifests that install the controllers: all in one process, or each of the named modules in a Deployment of its own. No cluster
is needed.

Without --image the images are ko's references to programs of sno's repository, for ko apply.`,
		Example: examples(`
			# All controllers in one process
			kubectl sno render --image registry.example.com/kubectl-sno:v1 | kubectl apply --server-side -f -
			# Two controllers, each in a Deployment of its own
			kubectl sno render --modules ingress,auth --image registry.example.com/{module}-controller:v1
			# Built and pushed on the way, in a clone of the repository
			kubectl sno render | ko apply -f -`),
		Args: cobra.NoArgs,
	}
	command.Flags().StringSliceVar(&names, "modules", nil,
		"One Deployment for each of these modules, comma-separated; without it one for all: "+strings.Join(moduleNames(), ", ")+".")
	command.Flags().StringVar(&image, "image", "", "The image of the controllers; "+modulePlaceholder+" in it stands for the name of the module.")
	complete(command, "modules", moduleNames)
	command.RunE = func(*cobra.Command, []string) error {
		if err := checkNames(names); err != nil {
			return err
		}
		if len(names) > 1 && image != "" && !strings.Contains(image, modulePlaceholder) {
			return fmt.Errorf("%w: put %s into --image=%s", errImage, modulePlaceholder, image)
		}
		if len(names) == 0 {
			names = []string{manifests.All}
		}
		for i, name := range names {
			text, err := rendered(name, image)
			if err != nil {
				return err
			}
			if i > 0 {
				text = "---\n" + text
			}
			fmt.Fprint(p.Out, text)
		}
		return nil
	}
	return command
}

func rendered(name, image string) (string, error) {
	text, err := manifests.Of(name)
	if err != nil || image == "" {
		return text, err
	}
	if name == manifests.All && strings.Contains(image, modulePlaceholder) {
		return "", fmt.Errorf("%w: --image=%s names a module, but all controllers are one process; name --modules", errImage, image)
	}
	return builtHere.ReplaceAllLiteralString(text, "image: "+strings.ReplaceAll(image, modulePlaceholder, name)), nil
}
