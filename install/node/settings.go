package node

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

// Settings are what the commands on the machine need to know.
type Settings struct {
	// Profile is that of sno-render: openshift or kubernetes.
	Profile string `json:"profile"`
	// ClusterName and BaseDomain are the install-config's.
	ClusterName string `json:"clusterName"`
	BaseDomain  string `json:"baseDomain"`
	// KubernetesVersion and Images are for profile kubernetes; a release payload has its own.
	KubernetesVersion string            `json:"kubernetesVersion,omitempty"`
	Images            map[string]string `json:"images,omitempty"`
	// ReleaseImage is the release payload, for profile openshift.
	ReleaseImage string `json:"releaseImage,omitempty"`
	// Validity is how long certificates last that nobody renews, as time.ParseDuration reads it.
	Validity string `json:"validity"`
	// Name is the node's name, and Addresses are its addresses. Both may be empty at creation: the machine's are found then, and
	// written down.
	Name      string       `json:"name,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// MachineNetworks are in which the addresses of the node are found.
	MachineNetworks []netip.Prefix `json:"machineNetworks,omitempty"`
	// InstallationDisk is what the image is written to.
	InstallationDisk string `json:"installationDisk,omitempty"`
	// InstallerArguments are further arguments of coreos-installer install.
	InstallerArguments []string `json:"installerArguments,omitempty"`
	// KernelArguments are those of the installed node.
	KernelArguments []string `json:"kernelArguments,omitempty"`
	// MasterIgnition is where the master config is: an http or https URL, or the path of a file on the machine.
	MasterIgnition string `json:"masterIgnition,omitempty"`
	// ProgramInImage is true where the machine's image has sno-install already, as ProgramOfImage, which then stays.
	ProgramInImage bool `json:"programInImage,omitempty"`
	// Created is when the config was made, in RFC 3339. A clock before it is wrong.
	Created string `json:"created"`
}

var (
	// ErrSettings is in the error of settings that cannot be read.
	ErrSettings = errors.New("unusable settings")
)

// Domain is the cluster's domain: api.Domain, api-int.Domain and *.apps.Domain are names of it.
func (s *Settings) Domain() string { return s.ClusterName + "." + s.BaseDomain }

// CreatedAt is when the config was made.
func (s *Settings) CreatedAt() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, s.Created)
	if err != nil {
		return at, fmt.Errorf("%w: created: %w", ErrSettings, err)
	}
	return at, nil
}

// Executable is the path of sno-install on the machine, relative to the root.
func (s *Settings) Executable() string {
	if s.ProgramInImage {
		return ProgramOfImage
	}
	return Program
}

// Encode returns the text of a settings file.
func (s *Settings) Encode() ([]byte, error) {
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return text, nil
}

// Read reads a settings file. Unknown fields are errors: they are from another version of this program.
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
