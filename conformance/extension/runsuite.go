// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"

	"github.com/spf13/cobra"
)

func (p Program) runSuite() *cobra.Command {
	var t testFlags
	var junit, html string
	c := contract(&cobra.Command{
		Use: "run-suite NAME", Short: "Run the tests of a suite", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			checks, err := p.inSuite(args[0])
			if err != nil {
				return err
			}
			out, err := newSink(p.Out, t.output)
			if err != nil {
				return err
			}
			done, err := p.test(c.Context(), &t.cluster, checks, out)
			if len(done.Results) > 0 {
				err = errors.Join(err, writeFile(junit, done, encoders[".xml"]), writeFile(html, done, encoders[".html"]))
			}
			return verdict(out, err)
		},
	})
	t.bind(c.Flags())
	c.Flags().StringVarP(&junit, "junit-path", "j", "", "file for a JUnit report")
	c.Flags().StringVar(&html, "html-path", "", "file for an HTML report")
	return c
}
