// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/runner"
)

const (
	exitFailed      = 1   // a check failed, or a report is worse than another one
	exitBadInput    = 2   // invalid arguments or input
	exitInterrupted = 130 // as shells do
)

// errFailed is returned after a complete output with failures.
var errFailed = errors.New("failed")

// Program is sno-tests with its dependencies. Catalogue, Connect and Now are set by tests only.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	// Colour is set if Err is a terminal with colours.
	Colour bool
	// Provider is nil for existing.Target.
	Provider Provider
	Build    Build

	Catalogue []catalogue.Check
	Connect   func(context.Context, cluster.Target, runner.Selection) (runner.Running, error)
	Now       func() time.Time
	// Further are commands that are not of the suite.
	Further []*cobra.Command
}

// Provider returns the cluster on which checks run.
type Provider func(context.Context, ClusterOptions) (cluster.Target, error)

// ClusterOptions choose and describe the cluster.
type ClusterOptions = existing.Options

// Main runs the program, prints errors, and returns the exit code.
func (p Program) Main(ctx context.Context, args []string) int {
	if p.Catalogue == nil {
		p.Catalogue = catalogue.All()
	}
	if p.Provider == nil {
		p.Provider = existing.Target
	}
	if p.Connect == nil {
		p.Connect = runner.Connect
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	err := p.command(args).ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(p.Err, "Interrupted")
		return exitInterrupted
	case errors.Is(err, errFailed), errors.Is(err, errNotCleanedUp):
		if !errors.Is(errFailed, err) { // errFailed alone has no further message
			fmt.Fprintln(p.Err, "sno-tests:", err)
		}
		return exitFailed
	default:
		fmt.Fprintln(p.Err, "sno-tests:", err)
		return exitBadInput
	}
}

func (p Program) command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "sno-tests",
		Short:         "Check the behaviour of OpenShift on a single node, and that it is unchanged on three",
		Version:       releaseVersion(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.AddGroup(&cobra.Group{ID: groupPeople, Title: "For people:"}, &cobra.Group{ID: groupContract, Title: "For OpenShift's test runner:"})
	root.AddCommand(p.run(), p.recover(), p.compare(), p.catalogue(), p.explain())
	root.AddCommand(p.Further...)
	root.AddCommand(p.info(), p.list(), p.runTest(), p.runSuite(), p.images())
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

const (
	groupPeople   = "people"
	groupContract = "contract"
)

// contract adds the --component flag of the contract.
func contract(c *cobra.Command) *cobra.Command {
	c.GroupID = groupContract
	named := c.Flags().String("component", "default", "component of this extension; the only one is "+self.String())
	c.PreRunE = func(*cobra.Command, []string) error {
		if *named != "default" && *named != self.String() {
			return fmt.Errorf("unknown component %q, want %s", *named, self)
		}
		return nil
	}
	return c
}
