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

// Input is what a config is made of.
type Input struct {
	Config *installconfig.Config
	// Network is that of the machine, in the live system and on the installed node; nil is the image's own, DHCP.
	Network *network.Config
	// Policy is how the topologies are decided; empty is the enhancement's.
	Policy topology.Policy
	// Manifests are the user's own.
	Manifests []files.File
	// Extra is for the installed node, and ExtraLive for the live system.
	Extra, ExtraLive *Folder
	State            *credentials.State
	// Settings are those that flags give. What the install-config has is added.
	Settings node.Settings
	// MasterIgnition is a config that the user gives in place of the machine-config server's; nil for none.
	MasterIgnition *Source
	// Program is where the machine gets sno-install from, if not from its image.
	Program Program
}

// Folder is a folder of a user, and its name.
type Folder struct {
	Name string
	FS   fs.FS
}

// Source is a file of a user, and its name.
type Source struct {
	Name string
	Text []byte
}

// Program is a program that Ignition downloads.
type Program struct {
	URL string
	// SHA512 is its sum, in hex.
	SHA512 string
}

// ErrLiveArguments is in the error of kernel arguments for a live system.
var ErrLiveArguments = errors.New("a live system's kernel arguments are part of its ISO: use coreos-installer iso kargs modify")

// ErrInput is in the error of settings that contradict each other.
var ErrInput = errors.New("unusable settings")

// Sources in errors about conflicts.
const (
	own           = "sno-install"
	installConfig = "install-config.yaml"
	networkConfig = "the network configuration"
)

// profile returns that of the static pods.
func (in *Input) profile() inputs.Profile { return inputs.Profile(in.Settings.Profile) }

// runtime returns the endpoint of the container runtime that images for the profile have.
func (in *Input) runtime() string {
	if in.profile() == inputs.OpenShift {
		return kubelet.CRIO
	}
	return kubelet.Containerd
}

// settings returns the settings file of the machine.
func (in *Input) settings() node.Settings {
	s := in.Settings
	c := in.Config
	s.ClusterName, s.BaseDomain, s.MachineNetworks = c.Name, c.BaseDomain, c.Networking.MachineNetwork
	if c.BootstrapInPlace != nil {
		s.InstallationDisk = c.BootstrapInPlace.InstallationDisk
	}
	s.InstallerArguments = c.InstallerArguments
	return s
}

// settingsFile returns the file with the settings.
func settingsFile(path string, s node.Settings) (files.File, error) {
	text, err := s.Encode()
	return files.File{Path: path, Mode: 0o600, Content: text}, err
}

// manifests returns all that is rendered and applied.
func (in *Input) manifests() ([]files.File, error) {
	generated, err := manifests.Generate(manifests.Input{
		Config: in.Config, Policy: in.Policy, Profile: in.profile(), ClusterID: in.State.ClusterID, InfraID: in.State.InfraID,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the field
	}
	return manifests.Merge(generated, in.State.Manifests, in.Manifests) //nolint:wrapcheck // it names the files
}

// addManifests adds them to a folder that only root reads.
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

// addProgram adds the program, which the machine's image does not have.
func (in *Input) addProgram(b *ignition.Builder) error {
	switch {
	case in.Settings.ProgramInImage && in.Program.URL != "":
		return fmt.Errorf("%w: the program is in the image, and comes from %s", ErrInput, in.Program.URL)
	case in.Settings.ProgramInImage:
		return nil
	case in.Program.URL == "":
		return fmt.Errorf("%w: where the machine gets sno-install from is not given", ErrInput)
	}
	b.AddFileFrom(own, node.Program, 0o755, in.Program.URL, in.Program.SHA512)
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

// addPulls adds what a system needs to pull images that no machine-config operator configures.
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
	b.AddKeys(installConfig+": sshKey", "core", c.SSHKeys)
}

// addExtra adds what is in a folder, and returns its kernel arguments.
func addExtra(b *ignition.Builder, folder *Folder) ([]string, error) {
	if folder == nil {
		return nil, nil
	}
	return b.AddExtra(folder.Name, folder.FS) //nolint:wrapcheck // it names the files
}

// firstOf returns the range of pod addresses of the first node, and the address of the cluster's DNS, which is the tenth of the services'
// range by convention.
func firstOf(n installconfig.Networking) (pods netip.Prefix, dns netip.Addr) {
	network := n.ClusterNetwork[0]
	pods = netip.PrefixFrom(network.CIDR.Addr(), int(network.HostPrefix))
	dns = n.ServiceNetwork[0].Addr()
	for range 10 {
		dns = dns.Next()
	}
	return pods, dns
}

// unit returns the text of a unit that runs sno-install once, and again while that may help.
func unit(description, executable, command string, more ...string) string {
	lines := []string{
		"[Unit]", "Description=" + description, "Wants=network-online.target", "After=network-online.target kubelet.service",
	}
	lines = append(lines, more...)
	return strings.Join(append(lines, "", "[Service]", "ExecStart=/"+executable+" "+command,
		// A changed input needs a person; everything else goes on by trying again.
		"Restart=on-failure", "RestartSec=10", "RestartPreventExitStatus=2", "",
		"[Install]", "WantedBy=multi-user.target", ""), "\n")
}
