// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"slices"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
)

const nodeImage = "node-image.service"

// SingleNode returns the config of the live system for bootstrap in place (R-BIP-4, R-BIP-8, R-BIP-9). Its spec is
// 3.2.0 unless the user's files need a later one. The error has all that is wrong.
func SingleNode(in Input) ([]byte, error) {
	var live ignition.Builder
	added, arguments, err := in.node()
	errs := []error{err}
	s := in.settings()
	s.KernelArguments = arguments
	given, err := in.givenIgnition()
	errs = append(errs, err)
	text, err := added.Encode()
	if err != nil {
		errs = append(errs, fmt.Errorf("additions to the installed node: %w", err))
	}
	if given != nil {
		s.MasterIgnition = "/" + node.UserMasterIgnition
		live.AddFile(own, files.File{Path: node.UserMasterIgnition, Mode: 0o600, Content: given.Text})
		if err == nil {
			// The additions must not conflict with it on the machine.
			_, err = ignition.Enrich(given.Name, given.Text, added)
			errs = append(errs, err)
		}
	}
	settings, err := settingsFile(node.LiveSettings, s)
	errs = append(errs, err)
	live.AddDir(own, node.LiveDir, 0o700)
	live.AddFile(own, settings)
	for _, f := range in.State.Bootstrap {
		f.Path = node.LiveDir + "/" + f.Path
		live.AddFile(own, f)
	}
	live.AddFile(own, files.File{Path: node.NodeAdditions, Mode: 0o600, Content: text})
	live.AddUnit(own, "bootkube.service", unit("Install this machine from the live system", s.Executable(), "bootstrap-in-place", "Requires=kubelet.service"))
	if in.profile() == inputs.OpenShift {
		live.AddUnit(own, nodeImage, fmt.Sprintf(nodeImageUnit, s.Executable()))
		live.AddDropIn(own, kubelet.Unit, "10-node-image.conf", "[Unit]\nRequires="+nodeImage+"\nAfter="+nodeImage+"\n")
	}
	live.AddUnit(own, "sno-install-status.service", fmt.Sprintf(statusUnit, s.Executable()))
	in.addMachine(&live)
	in.addPulls(&live)
	errs = append(errs, in.addManifests(&live, node.LiveManifests), in.addProgram(&live), in.addStandalone(&live))
	arguments, err = addExtra(&live, in.ExtraLive)
	errs = append(errs, err)
	if len(arguments) > 0 {
		errs = append(errs, fmt.Errorf("%s: %v: %w", in.ExtraLive.Name, arguments, ErrLiveArguments))
	}
	text, err = live.Encode()
	if err != nil {
		errs = append(errs, fmt.Errorf("the live system: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return text, nil
}

func (in *Input) node() (*ignition.Builder, []string, error) {
	b := &ignition.Builder{}
	addresses := in.checkAddresses()
	in.addMachine(b)
	if in.profile() == inputs.Kubernetes {
		// In profile openshift the machine-config operator does it.
		in.addPulls(b)
	}
	arguments, err := addExtra(b, in.Extra)
	if p := in.Config.ControlPlane; p != nil && p.Hyperthreading == "Disabled" && !slices.Contains(arguments, "nosmt") {
		arguments = append(arguments, "nosmt")
	}
	if in.Config.FIPS && in.profile() == inputs.Kubernetes {
		err = errors.Join(err, fmt.Errorf("%w: %s has fips: true, and without operators nothing enables FIPS mode: remove it, and use an image in FIPS mode",
			ErrInput, installConfig))
	}
	return b, arguments, errors.Join(addresses, err)
}

// givenIgnition returns the master config that is put on the machine: the user's, or in profile kubernetes one with a
// kubelet; nil if the machine fetches it.
func (in *Input) givenIgnition() (*Source, error) {
	given := in.MasterIgnition
	switch {
	case given != nil && in.Settings.MasterIgnition != "":
		return nil, fmt.Errorf("%w: the master config is given twice, as %s and %s", ErrInput, given.Name, in.Settings.MasterIgnition)
	case given != nil || in.Settings.MasterIgnition != "" || in.profile() == inputs.OpenShift:
		return given, nil // by default the release's machine-config operator makes it
	}
	var b ignition.Builder
	if err := in.addMember(&b); err != nil {
		return nil, err
	}
	text, err := b.Encode()
	if err != nil {
		return nil, fmt.Errorf("the kubelet of the installed node: %w", err)
	}
	return &Source{Name: "the kubelet of the installed node", Text: text}, nil
}
