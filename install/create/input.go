// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/topology"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/network"
	"github.com/solonode/sno/install/node"
)

// Input is the input of a config.
type Input struct {
	Config *installconfig.Config
	// Network configures the live system and the installed node; nil keeps the image's default, DHCP.
	Network *network.Config
	// Policy decides the topologies; empty is that of the enhancement.
	Policy    topology.Policy
	Manifests []files.File
	// Extra is for the installed node, and ExtraLive for the live system.
	Extra, ExtraLive *Folder
	State            *credentials.State
	// Settings are those of flags. Those of the install-config are added.
	Settings node.Settings
	// MasterIgnition is the user's master config, instead of a machine-config server's; nil for none.
	MasterIgnition *Source
	// Program is the download of sno-install; empty if the image has it.
	Program Program
}

// Folder is a user's folder.
type Folder struct {
	Name string
	FS   fs.FS
}

// Source is a user's file.
type Source struct {
	Name string
	Text []byte
}

// Program is a program that Ignition downloads.
type Program struct {
	URL    string
	SHA512 string
}

// ErrLiveArguments is in the error of kernel arguments for a live system.
var ErrLiveArguments = errors.New("a live system's kernel arguments are part of its ISO: use coreos-installer iso kargs modify")

// ErrInput is in the error of contradictory settings.
var ErrInput = errors.New("unusable settings")

const (
	own           = "sno-install"
	installConfig = "install-config.yaml"
	networkConfig = "the network configuration"
)

func (in *Input) profile() inputs.Profile { return inputs.Profile(in.Settings.Profile) }

func (in *Input) runtime() (node.Runtime, error) {
	if in.profile() == inputs.OpenShift {
		return node.CRIO, nil
	}
	return in.Settings.ContainerRuntime() //nolint:wrapcheck // it names the field
}

// addStandalone adds the kubelet of a live system.
func (in *Input) addStandalone(b *ignition.Builder) error {
	r, err := in.runtime()
	return errors.Join(err, kubelet.AddStandalone(b, own, r))
}

// addMember adds the kubelet of an installed node.
func (in *Input) addMember(b *ignition.Builder) error {
	r, err := in.runtime()
	pods, dns := firstOf(in.Config.Networking)
	return errors.Join(err, kubelet.AddMember(b, own, r, pods, dns))
}

func (in *Input) settings() node.Settings {
	s := in.Settings
	c := in.Config
	s.ClusterName, s.BaseDomain, s.MachineNetworks = c.Name, c.BaseDomain, c.Networking.MachineNetwork
	if c.BootstrapInPlace != nil {
		s.InstallationDisk = c.BootstrapInPlace.InstallationDisk
	}
	s.InstallerArguments = c.InstallerArguments
	s.StatusCertificate, s.StatusKey = string(in.State.StatusCert), string(in.State.StatusKey)
	return s
}

// checkAddresses finds a node whose addresses cannot be in a machine network. Without a network configuration they are
// only known to the machine.
func (in *Input) checkAddresses() error {
	a := installconfig.NodeAddresses{Given: in.Settings.Addresses, Automatic4: true, Automatic6: true}
	if in.Network != nil {
		a.Static = in.Network.Addresses()
		a.Automatic4, a.Automatic6 = in.Network.Automatic()
	}
	return in.Config.Networking.CheckNode(a) //nolint:wrapcheck // it names the flag or the file
}

func settingsFile(path string, s node.Settings) (files.File, error) {
	text, err := s.Encode()
	return files.File{Path: path, Mode: 0o600, Content: text}, err
}

func (in *Input) manifests() ([]files.File, error) {
	generated, err := manifests.Generate(manifests.Input{
		Config: in.Config, Policy: in.Policy, Profile: in.profile(), ClusterID: in.State.ClusterID, InfraID: in.State.InfraID,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the field
	}
	return manifests.Merge(generated, in.State.Manifests, in.Manifests) //nolint:wrapcheck // it names the files
}

func (in *Input) addManifests(b *ignition.Builder, dir string) error {
	list, err := in.manifests()
	if err != nil {
		return err
	}
	b.AddDir(own, dir, 0o700)
	for _, f := range list {
		f.Path = dir + "/" + f.Path
		b.AddFile(own, f)
	}
	return nil
}

func (in *Input) addProgram(b *ignition.Builder) error {
	switch {
	case in.Settings.ProgramInImage && in.Program.URL != "":
		return fmt.Errorf("%w: the program is in the image, and has the URL %s", ErrInput, in.Program.URL)
	case in.Settings.ProgramInImage:
		return nil
	case in.Program.URL == "":
		return fmt.Errorf("%w: give --program or --program-in-image", ErrInput)
	}
	b.AddDownload(own, node.Program, 0o755, in.Program.URL, in.Program.SHA512)
	return nil
}

// addMachine adds the machine's network, which no operator configures (R-BIP-24, R-BIP-19).
func (in *Input) addMachine(b *ignition.Builder) {
	if in.Network != nil {
		for _, f := range in.Network.Keyfiles() {
			b.AddFile(networkConfig, f)
		}
	}
}

// addPulls adds the configuration for pulling images, on a system without the machine-config operator.
func (in *Input) addPulls(b *ignition.Builder) {
	c := in.Config
	list := append(registries(c.ImageDigestSources), proxy(c.Proxy, manifests.NoProxy(c))...)
	list = append(list, trust(c)...)
	if c.PullSecret != "" {
		list = append(list, files.File{Path: node.PullSecret, Mode: 0o600, Content: []byte(c.PullSecret)})
	}
	for _, f := range list {
		b.AddFile(installConfig, f)
	}
	b.AddSSHKeys(installConfig+": sshKey", "core", c.SSHKeys)
}

func addExtra(b *ignition.Builder, folder *Folder) ([]string, error) {
	if folder == nil {
		return nil, nil
	}
	return b.AddExtra(folder.Name, folder.FS) //nolint:wrapcheck // it names the files
}

// firstOf returns the first node's range of pod addresses, and the address of the cluster's DNS, by convention the
// tenth of the service network.
func firstOf(n installconfig.Networking) (pods netip.Prefix, dns netip.Addr) {
	network := n.ClusterNetwork[0]
	pods = netip.PrefixFrom(network.CIDR.Addr(), int(network.HostPrefix))
	dns = n.ServiceNetwork[0].Addr()
	for range 10 {
		dns = dns.Next()
	}
	return pods, dns
}

// nodeImageUnit adds what a live system of CoreOS lacks since 4.19, before the kubelet starts (U-INS-36). A copy of the
// program has the SELinux label of ostree, which may write files with labels that the live system does not know.
const nodeImageUnit = `[Unit]
Description=Add kubelet and container runtime of the release to the live system
Wants=network-online.target
After=network-online.target
Before=kubelet.service crio.service bootkube.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=/usr/bin/install -D -m 0755 /%[1]s /run/sno-install/add-node-image
ExecStartPre=/usr/bin/chcon --reference=/usr/bin/ostree /run/sno-install/add-node-image
ExecStart=/run/sno-install/add-node-image add-node-image
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2

[Install]
WantedBy=multi-user.target
`

// statusUnit shows the phases of the live system to others, also after a failure that ends bootkube.service.
const statusUnit = `[Unit]
Description=Show the status of the installation
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/%s serve-status
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
`

// unit returns a unit that runs sno-install until it succeeds.
func unit(description, executable, command string, more ...string) string {
	lines := []string{
		"[Unit]", "Description=" + description, "Wants=network-online.target", "After=network-online.target kubelet.service",
	}
	lines = append(lines, more...)
	return strings.Join(append(lines, "", "[Service]", "ExecStart=/"+executable+" "+command,
		// Invalid input needs a person; other errors are retried.
		"Restart=on-failure", "RestartSec=10", "RestartPreventExitStatus=2", "",
		"[Install]", "WantedBy=multi-user.target", ""), "\n")
}
