package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	approver "github.com/solonode/sno/approver/controller"
	auth "github.com/solonode/sno/auth/controller"
	console "github.com/solonode/sno/console/controller"
	etcdguard "github.com/solonode/sno/etcdguard/controller"
	ingress "github.com/solonode/sno/ingress/controller"
	machineconfig "github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch/manager"
)

// ErrUnknownModule is returned for a name that no module has.
var ErrUnknownModule = errors.New("unknown module")

// allModules are the modules, with their flags unset.
func allModules() []manager.Module {
	return []manager.Module{
		&ingress.Module{}, &etcdguard.Module{}, &machineconfig.Module{}, &console.Module{}, &auth.Module{}, approver.NewModule(),
	}
}

func moduleNames() []string {
	var names []string
	for _, m := range allModules() {
		names = append(names, m.Name())
	}
	return names
}

// choice is which modules a verb is about, with their flags.
type choice struct {
	all   []manager.Module
	names []string
}

// newChoice declares the flags of all modules, and --modules unless the verb has another way to choose.
func newChoice(command *cobra.Command, byFlag bool) *choice {
	c := &choice{all: allModules()}
	if byFlag {
		command.Flags().StringSliceVar(&c.names, "modules", nil, "The modules, comma-separated; without it all: "+strings.Join(moduleNames(), ", ")+".")
		complete(command, "modules", moduleNames)
	}
	for _, m := range c.all {
		flags := flag.NewFlagSet(m.Name(), flag.ContinueOnError)
		m.BindFlags(flags)
		flags.VisitAll(func(f *flag.Flag) {
			added := pflag.PFlagFromGoFlag(f)
			added.Usage = m.Name() + ": " + f.Usage
			command.Flags().AddFlag(added)
		})
	}
	return c
}

// checkNames refuses names that no module has.
func checkNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(moduleNames(), name) {
			return fmt.Errorf("%w %q; there are: %s", ErrUnknownModule, name, strings.Join(moduleNames(), ", "))
		}
	}
	return nil
}

// chosen are the modules, in their order, checked.
func (c *choice) chosen() ([]manager.Module, error) {
	if err := checkNames(c.names); err != nil {
		return nil, err
	}
	var modules []manager.Module
	for _, m := range c.all {
		if len(c.names) > 0 && !slices.Contains(c.names, m.Name()) {
			continue
		}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		modules = append(modules, m)
	}
	return modules, nil
}
