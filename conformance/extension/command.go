// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"

	"github.com/spf13/cobra"
)

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

func (p Program) info() *cobra.Command {
	return contract(&cobra.Command{
		Use: "info", Short: "Print the description of this extension", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return encodeOne(p.Out, info{APIVersion: apiVersion, Source: p.Build, Component: self, Suites: p.suites(), Images: images})
		},
	})
}

func (p Program) images() *cobra.Command {
	return contract(&cobra.Command{
		Use: "images", Short: "Print the images that the checks need", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return encodeOne(p.Out, images) },
	})
}
