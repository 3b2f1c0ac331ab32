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

// SingleNode returns the config of the live system that bootstraps the node in place (R-BIP-4, R-BIP-8, R-BIP-9), of spec 3.2.0 unless the user's
// files need a later one. The error has all faults.
func SingleNode(in Input) ([]byte, error) {
	var live ignition.Builder
	added, arguments, err := in.node()
	faults := []error{err}
	s := in.settings()
	s.KernelArguments = arguments
	given, err := in.givenIgnition()
	faults = append(faults, err)
	text, err := added.Encode()
	if err != nil {
		faults = append(faults, fmt.Errorf("what is added to the installed node: %w", err))
	}
	if given != nil {
		s.MasterIgnition = "/" + node.GivenIgnition
		live.AddFile(own, files.File{Path: node.GivenIgnition, Mode: 0o600, Content: given.Text})
		if err == nil {
			// What is added on the machine must not contradict it.
			_, err = ignition.Enrich(given.Name, given.Text, added)
			faults = append(faults, err)
		}
	}
	settings, err := settingsFile(node.LiveSettings, s)
	faults = append(faults, err)
	live.AddDir(own, node.LiveDir, 0o700)
	live.AddFile(own, settings)
	live.AddFile(own, files.File{Path: node.NodeIgnition, Mode: 0o600, Content: text})
	live.AddUnit(own, "bootkube.service", unit("Install this machine from the live system", s.Executable(), "bootstrap-in-place", "Requires=kubelet.service"))
	in.addMachine(&live)
	in.addPulls(&live)
	faults = append(faults, in.addManifests(&live, node.LiveManifests), in.addProgram(&live), kubelet.AddStandalone(&live, own, in.runtime()))
	arguments, err = addExtra(&live, in.ExtraLive)
	faults = append(faults, err)
	if len(arguments) > 0 {
		faults = append(faults, fmt.Errorf("%s: %v: %w", in.ExtraLive.Name, arguments, ErrLiveArguments))
	}
	text, err = live.Encode()
	if err != nil {
		faults = append(faults, fmt.Errorf("the live system: %w", err))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return text, nil
}

// node returns what the installed node gets besides the master config, and its kernel arguments.
func (in *Input) node() (*ignition.Builder, []string, error) {
	b := &ignition.Builder{}
	in.addMachine(b)
	if in.profile() == inputs.Kubernetes {
		// Operators do it in the other profile, by MachineConfigs.
		in.addPulls(b)
	}
	arguments, err := addExtra(b, in.Extra)
	if p := in.Config.ControlPlane; p != nil && p.Hyperthreading == "Disabled" && !slices.Contains(arguments, "nosmt") {
		arguments = append(arguments, "nosmt")
	}
	if in.Config.FIPS && in.profile() == inputs.Kubernetes {
		err = errors.Join(err, fmt.Errorf("%w: %s has fips: true, and without operators nothing brings the node into FIPS mode: remove it, and boot an image that is in FIPS mode",
			ErrInput, installConfig))
	}
	return b, arguments, err
}

// givenIgnition returns the master config that the machine finds in a file: the user's, or where no machine-config server is one with a
// kubelet; nil where the machine fetches it.
func (in *Input) givenIgnition() (*Source, error) {
	given := in.MasterIgnition
	switch {
	case given != nil && in.Settings.MasterIgnition != "":
		return nil, fmt.Errorf("%w: the master config is given twice, as %s and %s", ErrInput, given.Name, in.Settings.MasterIgnition)
	case given != nil || in.Settings.MasterIgnition != "":
		return given, nil
	case in.profile() == inputs.OpenShift:
		return nil, fmt.Errorf("%w: profile openshift needs a master config: the URL of a machine-config server, or a file", ErrInput)
	}
	var b ignition.Builder
	pods, dns := firstOf(in.Config.Networking)
	if err := kubelet.AddMember(&b, own, in.runtime(), pods, dns); err != nil {
		return nil, err //nolint:wrapcheck // it says what it is of
	}
	text, err := b.Encode()
	if err != nil {
		return nil, fmt.Errorf("the kubelet of the installed node: %w", err)
	}
	return &Source{Name: "the kubelet of the installed node", Text: text}, nil
}
