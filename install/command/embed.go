// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/iso"
)

func newEmbed(out io.Writer) *cobra.Command {
	var in, to, config string
	c := &cobra.Command{
		Use: "embed --iso FILE --ignition FILE --out FILE", Short: "Copy a live ISO of CoreOS with an Ignition config in it", Args: noArguments,
		Long: "Copy a live ISO of CoreOS with an Ignition config in it, as \"coreos-installer iso ignition embed\" does. The ISO is not changed.",
		RunE: func(*cobra.Command, []string) error {
			if in == "" || to == "" || config == "" {
				return fmt.Errorf("--iso, --ignition and --out are needed; %w", errUsage)
			}
			text, err := os.ReadFile(config)
			if err != nil {
				return fmt.Errorf("--ignition: %w; %w", err, errInput)
			}
			if _, err := ignition.Parse(config, text); err != nil {
				return fmt.Errorf("--ignition: %w; %w", err, errInput)
			}
			if err := iso.Embed(in, to, text); err != nil {
				return fmt.Errorf("%w; %w", err, errInput)
			}
			fmt.Fprintf(out, "%s is %s with %s in it. It has the keys of the config: protect it like them.\n", to, in, config)
			return nil
		},
	}
	c.Flags().StringVar(&in, "iso", "", "live ISO")
	c.Flags().StringVar(&config, "ignition", "", "Ignition config")
	c.Flags().StringVar(&to, "out", "", "file to write")
	return c
}
