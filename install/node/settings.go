// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"
)

// BootstrapValidity is the validity of the certificates that only the bootstrap phase of a release uses (U-INS-34).
const BootstrapValidity = 24 * time.Hour

// Settings are the settings of the commands on the machine.
type Settings struct {
	Profile     string `json:"profile"`
	ClusterName string `json:"clusterName"`
	BaseDomain  string `json:"baseDomain"`
	// KubernetesVersion and Images are for profile kubernetes.
	KubernetesVersion string            `json:"kubernetesVersion,omitempty"`
	Images            map[string]string `json:"images,omitempty"`
	// Runtime is the name of an all-in-one node's container runtime. Empty, as in older settings, is containerd.
	Runtime string `json:"runtime,omitempty"`
	// ReleaseImage is for profile openshift.
	ReleaseImage string `json:"releaseImage,omitempty"`
	// Validity of certificates that no operator renews, for time.ParseDuration.
	Validity string `json:"validity"`
	// Name and Addresses of the node. If they are empty at creation, the machine determines and writes them.
	Name               string         `json:"name,omitempty"`
	Addresses          []netip.Addr   `json:"addresses,omitempty"`
	MachineNetworks    []netip.Prefix `json:"machineNetworks,omitempty"`
	InstallationDisk   string         `json:"installationDisk,omitempty"`
	InstallerArguments []string       `json:"installerArguments,omitempty"`
	KernelArguments    []string       `json:"kernelArguments,omitempty"`
	// MasterIgnition is an http or https URL, or the path of a file on the machine.
	MasterIgnition string `json:"masterIgnition,omitempty"`
	// MasterIgnitionSHA512 is the sum of the content of the URL, and MasterIgnitionCA its server's authority, in PEM.
	MasterIgnitionSHA512 string `json:"masterIgnitionSHA512,omitempty"`
	MasterIgnitionCA     string `json:"masterIgnitionCA,omitempty"`
	// ProgramInImage means that the image has sno-install at ImageProgram, where it stays.
	ProgramInImage bool `json:"programInImage,omitempty"`
	// StatusCertificate and StatusKey are for the endpoint with the status of the phases, in PEM.
	StatusCertificate string `json:"statusCertificate,omitempty"`
	StatusKey         string `json:"statusKey,omitempty"`
	// Created is the time of the config in RFC 3339. A clock with an earlier time is wrong.
	Created string `json:"created"`
}

var (
	// ErrSettings is in the error of settings that cannot be read.
	ErrSettings = errors.New("unusable settings")
)

// Domain returns the cluster's domain, the parent of api, api-int and *.apps.
func (s *Settings) Domain() string { return s.ClusterName + "." + s.BaseDomain }

// CreatedAt returns the time of the config.
func (s *Settings) CreatedAt() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, s.Created)
	if err != nil {
		return at, fmt.Errorf("%w: created: %w", ErrSettings, err)
	}
	return at, nil
}

// Executable returns the path of sno-install on the machine, relative to the root.
func (s *Settings) Executable() string {
	if s.ProgramInImage {
		return ImageProgram
	}
	return Program
}

// Encode returns a settings file.
func (s *Settings) Encode() ([]byte, error) {
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return text, nil
}

// Read reads a settings file. Unknown fields, as of another version, are errors.
func Read(path string) (*Settings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	s := &Settings{}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), s); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSettings, path, err)
	}
	return s, nil
}

// ErrUntrusted is in the error of a master config whose server nothing proves.
var ErrUntrusted = errors.New("nothing proves where the master config is from")

// Sum512 matches a SHA-512 sum as sha512sum prints it.
var Sum512 = regexp.MustCompile(`^[0-9a-f]{128}$`)

// TrustsMasterConfig returns an ErrUntrusted for a URL from which anybody on the way could answer with a config of his
// own, which runs as root: plain http to another machine without a sum of the content.
func (s *Settings) TrustsMasterConfig(from *url.URL) error {
	local := from.Hostname() == "localhost"
	if address, err := netip.ParseAddr(from.Hostname()); err == nil {
		local = address.IsLoopback()
	}
	if from.Scheme == "https" || local || s.MasterIgnitionSHA512 != "" {
		return nil
	}
	return fmt.Errorf("%w: %s: use https, or give the SHA-512 sum or a file", ErrUntrusted, from.Redacted())
}

// MasterConfigRoots returns the authorities of the server of the master config; nil for those of the system.
func (s *Settings) MasterConfigRoots() (*x509.CertPool, error) {
	if s.MasterIgnitionCA == "" {
		return nil, nil //nolint:nilnil // nil means the system's
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(s.MasterIgnitionCA)) {
		return nil, fmt.Errorf("%w: masterIgnitionCA has no certificate", ErrSettings)
	}
	return roots, nil
}
