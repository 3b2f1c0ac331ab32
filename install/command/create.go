// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rotate"
	"github.com/solonode/sno/topology"

	"github.com/solonode/sno/install/create"
	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/iso"
	"github.com/solonode/sno/install/network"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/preflight"
)

// Names in the folder of an installation, as openshift-install has them.
const (
	installConfigFile = "install-config.yaml"
	liveFile          = "bootstrap-in-place-for-live-iso.ign"
	allInOneFile      = "aio.ign"
	workerFile        = "worker.ign"
	metadataFile      = "metadata.json"
	kubeconfigFile    = "auth/kubeconfig"
	passwordFile      = "auth/kubeadmin-password"
	statusCAFile      = "auth/status-ca.crt"
)

const singleNodeLong = `Write the Ignition config of a live system that installs its machine as a single-node cluster. The folder --dir has
install-config.yaml, as for openshift-install, and optionally further manifests in manifests/ and openshift/. The command adds
` + liveFile + `, worker.ign, metadata.json, auth/ and the state for a second run.
With --iso and --out it also writes a copy of the live ISO with the config in it.`

const allInOneLong = `Write aio.ign: the Ignition config of a machine that becomes a cluster of its own with etcd, kube-apiserver, kube-controller-manager and
kube-scheduler as static pods, and without operators. It is for an installed image, not for a live system.`

type creation struct {
	purpose                  installconfig.Purpose
	file                     string
	dir, policy, networkFile string
	extra, extraLive         string
	master, program, sum     string
	masterSum, masterCA      string
	iso, out                 string
	validity                 time.Duration
	addresses                []string
	settings                 node.Settings
}

func newSingleNode(out, errs io.Writer) *cobra.Command {
	c := &creation{purpose: installconfig.SingleNode, file: liveFile}
	command := &cobra.Command{
		Use: "single-node-ignition-config --dir FOLDER", Short: "Write the config of a live system that installs its machine in place", Long: singleNodeLong, Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command.Context(), out, errs) },
	}
	f := command.Flags()
	c.bind(f)
	f.StringVar(&c.settings.Profile, "profile", string(inputs.OpenShift), "profile of the static pods: openshift or kubernetes")
	f.StringVar(&c.settings.ReleaseImage, "release-image", os.Getenv(releaseVariable), "release payload, by digest, for profile openshift; by default that of "+releaseVariable)
	f.StringVar(&c.extraLive, "extra-live", "", "folder like that of --extra, for the live system")
	f.StringVar(&c.master, "master-ignition", "", "master config: https URL of a machine-config server that the live system reaches, http with a sum or to localhost, or a file here")
	f.StringVar(&c.masterSum, "master-ignition-sha512", "", "SHA-512 sum of the content of that URL")
	f.StringVar(&c.masterCA, "master-ignition-ca", "", "file with the authority of that server, in PEM; by default those of the live system")
	f.StringVar(&c.iso, "iso", "", "live ISO to copy with the config in it")
	f.StringVar(&c.out, "out", "", "ISO to write")
	return command
}

func newAllInOne(out, errs io.Writer) *cobra.Command {
	c := &creation{purpose: installconfig.AllInOne, file: allInOneFile, settings: node.Settings{Profile: string(inputs.Kubernetes)}}
	command := &cobra.Command{
		Use: "aio-ignition --dir FOLDER", Short: "Write the config of a machine with a minimal control plane", Long: allInOneLong, Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command.Context(), out, errs) },
	}
	c.bind(command.Flags())
	command.Flags().StringVar(&c.settings.Runtime, "runtime", node.CRIO.Name, "container runtime of the image: "+node.RuntimeNames())
	return command
}

func (c *creation) bind(f *pflag.FlagSet) {
	f.StringVar(&c.dir, "dir", ".", "folder of the installation")
	f.StringVar(&c.policy, "policy", "", "policy that decides the topologies: "+policies()+"; the first by default")
	f.StringVar(&c.networkFile, "network-config", "", "network of the machine, an NMState document")
	f.StringVar(&c.extra, "extra", "", "folder with units/, files/ and kernel-arguments/ for the installed node")
	f.StringVar(&c.settings.KubernetesVersion, "kubernetes-version", "", "version of Kubernetes, such as 1.35.2, for profile kubernetes")
	f.StringToStringVar(&c.settings.Images, "image", nil, "image by name, such as etcd=registry.example.com/etcd:3.6.8; may be repeated")
	f.DurationVar(&c.validity, "validity", inputs.DefaultValidity, "validity of certificates that no operator renews")
	f.StringVar(&c.program, "program", "", "http or https URL from which the machine downloads sno-install")
	f.StringVar(&c.sum, "program-sha512", "", "SHA-512 sum of that program; by default of the running program")
	f.BoolVar(&c.settings.ProgramInImage, "program-in-image", false, "the machine's image has /"+node.ImageProgram)
	f.StringVar(&c.settings.Name, "node-name", "", "name of the node; by default the machine's hostname")
	f.StringArrayVar(&c.addresses, "node-ip", nil, "address of the node, at most one of each family; by default the machine's addresses in the machine networks")
}

func policies() string {
	var names []string
	for _, p := range topology.Policies() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

var errFlag = errors.New("unusable value")

func (c *creation) run(ctx context.Context, out, errs io.Writer) error {
	now := time.Now()
	c.settings.Created, c.settings.Validity = now.UTC().Format(time.RFC3339), c.validity.String()
	in, warnings, err := c.input(ctx, now)
	for _, w := range warnings {
		fmt.Fprintln(errs, "warning:", w)
	}
	if err != nil {
		return unusable(err)
	}
	list, err := c.files(in, now)
	if err != nil {
		return unusable(err)
	}
	if c.iso != "" {
		if err := iso.Embed(c.iso, c.out, list[0].Content); err != nil {
			return unusable(err)
		}
	}
	if _, err := rotate.WriteChanged(c.dir, list); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return c.summary(out, list)
}

// input reads all input of a config. The error has all that is wrong.
func (c *creation) input(ctx context.Context, now time.Time) (create.Input, []string, error) {
	in := create.Input{Policy: topology.Policy(c.policy), Settings: c.settings, Program: create.Program{URL: c.program, SHA512: c.sum}}
	failed := c.flags(&in)
	check := func(err error) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	var options credentials.Options
	config, list, warnings, err := readConfig(c.dir, c.purpose, c.settings.Profile == string(inputs.OpenShift))
	in.Config, in.Manifests = config, list
	check(err)
	if err == nil {
		options = credentials.Options{
			Profile: inputs.Profile(c.settings.Profile), Name: config.Name, Domain: config.Domain(), Validity: c.validity, Now: now,
			ServiceNetwork: config.Networking.ServiceNetwork,
		}
		in.State, err = credentials.Open(c.dir, options)
		check(err)
		// They could not be applied, and the machine would report that after an hour (R-BIP-21).
		findings := preflight.Check(ctx, preflight.Input{Checks: []string{preflight.Manifests}, Manifests: list, Creating: true})
		check(preflight.Failed(findings))
		for _, f := range findings {
			if f.State == preflight.StateWarning {
				warnings = append(warnings, f.Message+": "+f.Advice)
			}
		}
	}
	if c.networkFile != "" {
		text, err := os.ReadFile(c.networkFile)
		check(err)
		if err == nil {
			in.Network, err = network.Parse(c.networkFile, text)
			check(err)
		}
	}
	if len(failed) == 0 && in.State == nil {
		in.State, err = credentials.New(ctx, options)
		check(err)
	}
	return in, warnings, errors.Join(failed...)
}

// releaseVariable is the variable of openshift-install for the release payload.
const releaseVariable = "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"

// byDigest matches a reference of an image that names one content.
var byDigest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// flags checks the flags, and parses those that are more than a string.
func (c *creation) flags(in *create.Input) []error {
	var failed []error
	wrong := func(flag, value, advice string) {
		failed = append(failed, fmt.Errorf("--%s %q: %w: %s", flag, redacted(value), errFlag, advice))
	}
	profile := inputs.Profile(c.settings.Profile)
	switch {
	case profile != inputs.OpenShift && profile != inputs.Kubernetes:
		wrong("profile", c.settings.Profile, "openshift or kubernetes")
	case profile == inputs.OpenShift && c.settings.ReleaseImage == "":
		wrong("release-image", "", "profile openshift needs a release payload")
	case profile == inputs.OpenShift && !byDigest.MatchString(c.settings.ReleaseImage):
		wrong("release-image", c.settings.ReleaseImage, "give it by digest, NAME@sha256:DIGEST: what a tag means can change")
	case profile == inputs.Kubernetes && c.settings.KubernetesVersion == "":
		wrong("kubernetes-version", "", "profile kubernetes needs it, such as 1.35.2")
	}
	if _, err := c.settings.ContainerRuntime(); err != nil || c.settings.Runtime == "" && c.purpose == installconfig.AllInOne {
		wrong("runtime", c.settings.Runtime, node.RuntimeNames())
	}
	if v := c.settings.KubernetesVersion; v != "" {
		if _, err := version.ParseSemantic(v); err != nil {
			wrong("kubernetes-version", v, "give a version, such as 1.35.2")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.settings.Images)) {
		switch {
		case profile == inputs.OpenShift:
			wrong("image", name, "profile openshift has the images of the release payload")
		case !slices.Contains(inputs.KubernetesImages, name):
			wrong("image", name, "the images are "+strings.Join(inputs.KubernetesImages, ", "))
		}
	}
	if in.Policy != "" && !slices.Contains(topology.Policies(), in.Policy) {
		wrong("policy", c.policy, "use one of "+policies())
	}
	if c.validity < inputs.MinValidity {
		wrong("validity", c.validity.String(), "at least "+inputs.MinValidity.String())
	}
	if (c.iso == "") != (c.out == "") {
		wrong("iso", c.iso, "--iso and --out go together")
	} else if c.iso != "" {
		if _, err := iso.Read(c.iso); err != nil {
			failed = append(failed, fmt.Errorf("--iso: %w", err))
		}
	}
	for _, a := range c.addresses {
		address, err := netip.ParseAddr(a)
		if err != nil {
			wrong("node-ip", a, "give an address")
			continue
		}
		if slices.ContainsFunc(in.Settings.Addresses, func(other netip.Addr) bool { return other.Is4() == address.Is4() }) {
			wrong("node-ip", a, "give at most one address of each family")
		}
		in.Settings.Addresses = append(in.Settings.Addresses, address)
	}
	if c.settings.Name != "" && len(validation.IsDNS1123Subdomain(c.settings.Name)) > 0 {
		wrong("node-name", c.settings.Name, "a node's name is a DNS name in lower case")
	}
	if c.program != "" && !isURL(c.program) {
		wrong("program", c.program, "give an http or https URL")
	}
	if c.sum != "" && !node.Sum512.MatchString(c.sum) {
		wrong("program-sha512", c.sum, "give 128 digits, as sha512sum prints them")
	}
	if (c.program == "") != c.settings.ProgramInImage {
		wrong("program", c.program, "give either a URL or --program-in-image")
	}
	if c.program != "" && c.sum == "" {
		sum, err := ownSum()
		if err != nil {
			failed = append(failed, err)
		}
		in.Program.SHA512 = sum
	}
	if (c.masterSum != "" || c.masterCA != "") && !isURL(c.master) {
		wrong("master-ignition", c.master, "--master-ignition-sha512 and --master-ignition-ca go with a URL")
	}
	if isURL(c.master) {
		in.Settings.MasterIgnition = c.master
		if err := c.masterServer(&in.Settings); err != nil {
			failed = append(failed, err)
		}
	} else if c.master != "" {
		text, err := os.ReadFile(c.master)
		if err != nil {
			wrong("master-ignition", c.master, "give an https URL, or a readable file")
		}
		in.MasterIgnition = &create.Source{Name: c.master, Text: text}
	}
	in.Extra, in.ExtraLive = folderOf("extra", c.extra, &failed), folderOf("extra-live", c.extraLive, &failed)
	return failed
}

// masterServer adds what proves the server of the master config.
func (c *creation) masterServer(s *node.Settings) error {
	if s.MasterIgnitionSHA512 = c.masterSum; c.masterSum != "" && !node.Sum512.MatchString(c.masterSum) {
		return fmt.Errorf("--master-ignition-sha512 %q: %w: give 128 digits, as sha512sum prints them", c.masterSum, errFlag)
	}
	if c.masterCA != "" {
		text, err := os.ReadFile(c.masterCA)
		if err != nil {
			return fmt.Errorf("--master-ignition-ca: %w: %w", errFlag, err)
		}
		s.MasterIgnitionCA = string(text)
		if _, err := s.MasterConfigRoots(); err != nil {
			return fmt.Errorf("--master-ignition-ca %q: %w: there is no certificate in it", c.masterCA, errFlag)
		}
	}
	from, err := url.Parse(s.MasterIgnition)
	if err == nil {
		err = s.TrustsMasterConfig(from)
	}
	if err != nil {
		return fmt.Errorf("--master-ignition: %w: %w", errFlag, err)
	}
	return nil
}

// redacted hides a password in a URL.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return text
}

func folderOf(flag, name string, failed *[]error) *create.Folder {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		*failed = append(*failed, fmt.Errorf("--%s %q: %w: no such folder", flag, name, errFlag))
		return nil
	}
	folder := &create.Folder{Name: name, FS: os.DirFS(name)}
	// The folder is only validated here; create adds it to the config.
	if _, err := new(ignition.Builder).AddExtra(folder.Name, folder.FS); err != nil {
		*failed = append(*failed, err)
	}
	return folder
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func ownSum() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("--program-sha512 is needed: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("--program-sha512 is needed: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	h := sha512.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("--program-sha512 is needed: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (c *creation) files(in create.Input, now time.Time) ([]files.File, error) {
	encode := create.SingleNode
	if c.purpose == installconfig.AllInOne {
		encode = create.AllInOne
	}
	text, err := encode(in)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names what is wrong
	}
	secret := func(path string, content []byte) files.File {
		return files.File{Path: path, Mode: 0o600, Content: content}
	}
	list := []files.File{secret(c.file, text), secret(kubeconfigFile, in.State.Kubeconfig), secret(statusCAFile, in.State.StatusCA)}
	if in.State.Password != "" {
		list = append(list, secret(passwordFile, []byte(in.State.Password)))
	}
	metadata, err := in.State.Metadata(in.Config.Name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	list = append(list, files.File{Path: metadataFile, Mode: 0o644, Content: metadata})
	if c.settings.Profile == string(inputs.OpenShift) {
		ca, _, err := in.State.WorkerCA(now)
		if err != nil {
			return nil, err //nolint:wrapcheck // it has advice
		}
		worker, err := ignition.Pointer("api-int."+in.Config.Domain(), "worker", ca)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the host
		}
		list = append(list, secret(workerFile, worker))
	}
	state, err := in.State.Files()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	for _, f := range state {
		f.Path = credentials.Dir + "/" + f.Path
		list = append(list, f)
	}
	return list, nil
}

var about = map[string]string{
	liveFile:       "config of the live system; it has private keys",
	allInOneFile:   "config of the machine; it has private keys",
	workerFile:     "config of workers that are added later",
	metadataFile:   "names of the cluster",
	kubeconfigFile: "kubeconfig of the administrator",
	passwordFile:   "password of user kubeadmin",
}

func (c *creation) summary(out io.Writer, list []files.File) error {
	fmt.Fprintf(out, "Written to %s:\n", c.dir)
	rows := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range list {
		if what := about[f.Path]; what != "" {
			fmt.Fprintf(rows, "  %s\t%9s\t%s\n", f.Path, size(len(f.Content)), what)
		}
	}
	fmt.Fprintf(rows, "  %s/\t\tkeys, for a second run within %d hours\n", credentials.Dir, int(credentials.MaxAge.Hours()))
	if err := rows.Flush(); err != nil {
		return fmt.Errorf("print the files: %w", err)
	}
	config := filepath.Join(c.dir, c.file)
	switch {
	case c.iso != "":
		fmt.Fprintf(out, "\n%s is %s with the config in it. It has private keys: protect it like them.\n\nNext: boot the machine from it.\n", c.out, c.iso)
	case c.purpose == installconfig.AllInOne:
		fmt.Fprintf(out, "\nNext: write the image and the config to the machine's disk, and restart:\n  coreos-installer install --ignition-file %s DISK\n", config)
	default:
		fmt.Fprintf(out, "\nNext: put the config into a live ISO, and boot the machine from it:\n  sno-install embed --iso LIVE-ISO --ignition %s --out NEW-ISO\n", config)
	}
	return nil
}

func size(n int) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/1024)
}
