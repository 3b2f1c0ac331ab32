// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/leftovers"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/network"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/preflight"
)

const preflightLong = `Check for reasons why an installation would fail, with advice. With --dir, on any machine of the node's network, before the config is
created: DNS records, clock, registries, manifests. With --host, in the live system on the machine itself: the address and the disk too.`

func newPreflight(out io.Writer) *cobra.Command {
	var dir, networkFile, name, release, root string
	var host bool
	c := &cobra.Command{
		Use: "preflight", Short: "Check for reasons why an installation would fail", Long: preflightLong, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := hostInput(root)
			var skipped []string
			if !host {
				in, skipped, err = folderInput(dir, networkFile, name, release)
			}
			for _, line := range skipped {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", line)
			}
			if err != nil {
				return unusable(err)
			}
			in.Host = host
			findings := preflight.Check(c.Context(), in)
			if err := preflight.Print(out, findings); err != nil {
				return err //nolint:wrapcheck // it names the output
			}
			if preflight.Failed(findings) != nil {
				return errPreflight
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "folder of the installation, with "+installConfigFile)
	c.Flags().StringVar(&networkFile, "network-config", "", "network of the machine, an NMState document")
	c.Flags().StringVar(&name, "node-name", "", "name of the node")
	c.Flags().StringVar(&release, "release-image", "", "release payload")
	c.Flags().BoolVar(&host, "host", false, "check this machine, from its live system")
	c.Flags().StringVar(&root, "root", "/", "root folder of the machine, with --host")
	return c
}

var errPreflight = fmt.Errorf("the installation would fail: %w", phase.ErrInput)

func hostInput(root string) (preflight.Input, error) {
	s, err := node.Read(filepath.Join(root, node.LiveSettings))
	if err != nil {
		return preflight.Input{}, err //nolint:wrapcheck // it names the file
	}
	in, err := settingsInput(s)
	if err != nil {
		return in, err
	}
	in.Root = root
	if in.Name == "" {
		in.Name, _ = os.Hostname()
	}
	secret, err := os.ReadFile(filepath.Join(root, node.PullSecret))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return in, fmt.Errorf("pull secret: %w", err)
	}
	// In the live system mirrors and the trust bundle are part of the system's configuration.
	in.Sources, err = preflight.Sources(s.ReleaseImage, nil, string(secret))
	in.Proxy, in.NoProxy = environmentProxy()
	return in, err //nolint:wrapcheck // it names the pull secret
}

func environmentProxy() (*installconfig.Proxy, string) {
	p := installconfig.Proxy{HTTPProxy: os.Getenv("HTTP_PROXY"), HTTPSProxy: os.Getenv("HTTPS_PROXY"), NoProxy: os.Getenv("NO_PROXY")}
	if p.HTTPProxy == "" && p.HTTPSProxy == "" {
		return nil, ""
	}
	return &p, p.NoProxy
}

// folderInput reads the folder of an installation. Each line of skipped is about a file that is not read.
func folderInput(dir, networkFile, name, release string) (in preflight.Input, skipped []string, err error) {
	c, list, skipped, err := readConfig(dir, installconfig.SingleNode, release != "")
	if err != nil {
		return in, skipped, err
	}
	in = preflight.Input{
		Domain: c.Domain(), Name: name, MachineNetworks: c.Networking.MachineNetwork, Manifests: list,
		Proxy: c.Proxy, NoProxy: manifests.NoProxy(c), TrustBundle: c.AdditionalTrustBundle,
	}
	if c.BootstrapInPlace != nil {
		in.Disk = c.BootstrapInPlace.InstallationDisk
	}
	if networkFile != "" {
		text, err := os.ReadFile(networkFile)
		if err != nil {
			return in, skipped, err //nolint:wrapcheck // it names the file
		}
		n, err := network.Parse(networkFile, text)
		if err != nil {
			return in, skipped, err //nolint:wrapcheck // it names the file
		}
		in.Static = n.Addresses()
		in.Addresses = inside(in.Static, in.MachineNetworks)
		known := installconfig.NodeAddresses{Static: in.Static}
		known.Automatic4, known.Automatic6 = n.Automatic()
		if err := c.Networking.CheckNode(known); err != nil {
			return in, skipped, fmt.Errorf("%s: %w", networkFile, err)
		}
	}
	in.Sources, err = preflight.Sources(release, c.ImageDigestSources, c.PullSecret)
	return in, skipped, err //nolint:wrapcheck // it names the pull secret
}

// readConfig reads the install-config, for a release or not, and the user's manifests. The warnings are about what is
// without effect.
func readConfig(dir string, purpose installconfig.Purpose, release bool) (*installconfig.Config, []files.File, []string, error) {
	list, warnings, failed := userManifests(dir)
	options := installconfig.Options{Purpose: purpose, Release: release, InstallerArguments: os.Getenv(installconfig.DiskVariable)}
	if failed == nil {
		options.OVNKubernetes, failed = manifests.OVNKubernetes(list)
	}
	file := filepath.Join(dir, installConfigFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, list, warnings, errors.Join(fmt.Errorf("%w; --dir is the folder that has it", err), failed)
	}
	c, without, err := installconfig.Read(file, text, options)
	return c, list, append(without, warnings...), errors.Join(err, failed)
}

func inside(addresses, networks []netip.Prefix) []netip.Addr {
	var found []netip.Addr
	for _, a := range addresses {
		for _, n := range networks {
			if n.Contains(a.Addr()) {
				found = append(found, a.Addr())
				break
			}
		}
	}
	return found
}

func userManifests(dir string) (all []files.File, skipped []string, err error) {
	var errs []error
	for _, name := range []string{"manifests", "openshift"} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		list, others, err := manifests.ReadUserManifests(name, os.DirFS(filepath.Join(dir, name)))
		all, skipped, errs = append(all, list...), append(skipped, others...), append(errs, err)
	}
	// Merge reports objects that two files have.
	_, err = manifests.Merge(all)
	return all, skipped, errors.Join(append(errs, err)...)
}

const gatherLong = `Gather the logs of this machine in the layout of openshift-install's log bundle, without private keys, tokens, kubeconfigs and pull
secrets. In the live system these are the logs of the bootstrap phase; on the installed node its own, and those of the bootstrap phase.`

func newGather(out io.Writer) *cobra.Command {
	var o gather.Options
	var to string
	c := &cobra.Command{
		Use: "gather --id ID", Short: "Gather the logs of this machine", Long: gatherLong, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Time = time.Now()
			if !c.Flags().Changed("id") {
				o.ID = o.Time.UTC().Format("20060102150405")
			}
			var err error
			if to == "-" {
				var bundle []byte
				if bundle, err = gather.Bundle(c.Context(), o); err == nil {
					_, err = out.Write(bundle)
				}
			} else {
				to = cmp.Or(to, "log-bundle-"+o.ID+".tar.gz")
				err = gather.File(c.Context(), to, o)
			}
			switch {
			case errors.Is(err, gather.ErrID):
				return fmt.Errorf("--id: %w; %w", err, errUsage)
			case err == nil && to != "-":
				fmt.Fprintf(out, "The logs are in %s.\n", to)
			}
			return err //nolint:wrapcheck // it names the file
		},
	}
	c.Flags().StringVar(&o.ID, "id", "", "name of the bundle; by default the time in UTC, such as 20060102150405")
	c.Flags().StringVar(&to, "output", "", "file to write, or - for standard output; by default log-bundle-ID.tar.gz")
	c.Flags().BoolVar(&o.NodeOnly, "node-only", false, "only the part of the node itself")
	c.Flags().StringVar(&o.Root, "root", "/", "root folder of the machine")
	return c
}

func newLeftovers(out io.Writer) *cobra.Command {
	var root string
	var o leftovers.Options
	c := &cobra.Command{
		Use: "check-leftovers", Short: "List what the installation has left on this node", Args: noArguments,
		Long: "List what the installation has left on this node: files, units, presets, images, certificates. The exit code is 1 if anything is left,\n" +
			"and 2 if the check fails.",
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := leftovers.Check(c.Context(), root, o)
			if err == nil || len(found) > 0 {
				err = errors.Join(err, leftovers.Print(out, found))
			}
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errInput)
			}
			if len(found) > 0 {
				return fmt.Errorf("%w: %d", errLeftovers, len(found))
			}
			return nil
		},
	}
	c.Flags().StringVar(&root, "root", "/", "root folder of the node")
	c.Flags().StringArrayVar(&o.Images, "image", nil, "reference of an image that only the installation needed; may be repeated")
	return c
}

var errLeftovers = errors.New("the installation has left things on this node")
