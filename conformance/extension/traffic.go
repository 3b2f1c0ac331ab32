// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/traffic"
)

func (p Program) traffic() *cobra.Command {
	var interval time.Duration
	c := &cobra.Command{
		Use: "traffic URL [HOST:PORT]", GroupID: groupPeople, Short: "Send requests until interrupted, and print a line for each",
		Args: cobra.RangeArgs(1, 2),
		Long: `Send requests until interrupted, each with a new connection, and print "ok" or "failed" and the seconds for each.

It is a client for --client-command of recover. HOST:PORT is where to connect, if the host of the URL does not resolve.`,
		RunE: func(c *cobra.Command, args []string) error {
			endpoint := traffic.Endpoint{URL: args[0], Interval: interval}
			if len(args) > 1 {
				endpoint.Address = args[1]
			}
			broken := make(chan error, 1)
			endpoint.Each = func(sample traffic.Sample) {
				if err := sample.Write(p.Out); err != nil {
					select {
					case broken <- err:
					default:
					}
				}
			}
			requests := traffic.Start(c.Context(), endpoint)
			defer requests.Stop()
			select {
			case <-c.Context().Done():
				return nil
			case err := <-broken: // nobody reads the output any more
				return err
			}
		},
	}
	c.Flags().DurationVar(&interval, "interval", traffic.Interval, "time between two requests")
	return c
}
