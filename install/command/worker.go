// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition"
)

const workerLong = `Write worker.ign: the Ignition config of a machine that joins a running cluster as a worker. It points to the cluster's machine-config
server, and trusts the CA of that server only:

  oc -n openshift-machine-config-operator get configmap machine-config-server-ca -o jsonpath='{.data.ca-bundle\.crt}' > ca.crt
  sno-install create worker-ignition --host api-int.sno.example.com --ca ca.crt

Do not boot a live system with it, which would install nothing: boot a live system that has no config, write the disk with
"coreos-installer install --ignition-file worker.ign DISK", restart, and approve the two requests of the new node.`

func newWorker(out io.Writer) *cobra.Command {
	var dir, host, ca, pool string
	c := &cobra.Command{
		Use: "worker-ignition --host HOST --ca FILE", Short: "Write the config of a worker that is added to a running cluster", Long: workerLong, Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if host == "" || ca == "" {
				return fmt.Errorf("--host and --ca are needed; %w", errUsage)
			}
			_, addressErr := netip.ParseAddr(host)
			if wrong := append(validation.IsDNS1123Subdomain(host), validation.IsDNS1123Label(pool)...); addressErr != nil && len(wrong) > 0 {
				return fmt.Errorf("--host %q, --pool %q: %v; %w", host, pool, wrong, errUsage)
			}
			bundle, err := os.ReadFile(ca)
			if err != nil {
				return fmt.Errorf("--ca: %w; %w", err, errInput)
			}
			end, err := credentials.NotAfter(bundle, time.Now())
			if err != nil {
				return fmt.Errorf("--ca %s: %w; %w", ca, err, errInput)
			}
			text, err := ignition.Pointer(host, pool, bundle)
			if err != nil {
				return err //nolint:wrapcheck // it names the host
			}
			file := pool + ".ign"
			if _, err := rotate.WriteChanged(dir, []files.File{{Path: file, Mode: 0o600, Content: text}}); err != nil {
				return fmt.Errorf("%w; %w", err, errInput)
			}
			fmt.Fprintf(out, "%s is written. The CA of the machine-config server ends at %s, in %d days: machines that boot later do not trust it.\n",
				filepath.Join(dir, file), end.Format(time.RFC3339), int(time.Until(end)/(24*time.Hour)))
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "folder to write to")
	c.Flags().StringVar(&host, "host", "", "name or address of the machine-config server, such as api-int.NAME.DOMAIN")
	c.Flags().StringVar(&ca, "ca", "", "file with the CA of the machine-config server, in PEM")
	c.Flags().StringVar(&pool, "pool", "worker", "machine config pool")
	return c
}
