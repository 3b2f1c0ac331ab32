package create

import (
	"errors"
	"fmt"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
)

// AllInOne returns the config of a machine that becomes a cluster of its own with a minimal control plane (R-AIO-1, R-AIO-4). It is for an installed image,
// not a live system. There are no operators, so the static pods are those of profile kubernetes. The error has all faults.
func AllInOne(in Input) ([]byte, error) {
	if in.profile() != inputs.Kubernetes {
		return nil, fmt.Errorf("%w: an all-in-one node has no operators: use profile %s", ErrInput, inputs.Kubernetes)
	}
	if in.ExtraLive != nil {
		return nil, fmt.Errorf("%w: %s is for a live system, and there is none; use --extra", ErrInput, in.ExtraLive.Name)
	}
	b, arguments, extra := in.node()
	b.AddKernelArguments(arguments...)
	s := in.settings()
	settings, err := settingsFile(node.AllInOneSettings, s)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is of
	}
	b.AddDir(own, node.AllInOneDir, 0o700)
	b.AddDir(own, node.ManifestDir, 0o700)
	b.AddFile(own, settings)
	b.AddUnit(own, "aiokube.service", unit("Start the control plane of this node", s.Executable(), "aiokube", "ConditionPathExists=!/"+node.AllInOneDone))
	b.AddUnit(own, "sno-rotate.service", fmt.Sprintf(rotateUnit, node.AllInOneDone, s.Executable()))
	b.AddUnit(own, "sno-rotate.timer", rotateTimer)
	pods, dns := firstOf(in.Config.Networking)
	faults := []error{extra, in.addManifests(b, node.AllInOneManifests), in.addProgram(b), kubelet.AddMember(b, own, in.runtime(), pods, dns)}
	text, err := b.Encode()
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	return text, nil
}

// rotateUnit renews certificates that are due, once there are some.
const rotateUnit = `[Unit]
Description=Renew the certificates of the control plane
ConditionPathExists=/%s

[Service]
Type=oneshot
ExecStart=/%s rotate
`

// rotateTimer checks several times a day: the shortest certificates of an all-in-one node are the kubelet's, which it renews itself. A
// machine that was off checks when it starts.
const rotateTimer = `[Unit]
Description=Renew the certificates of the control plane

[Timer]
OnCalendar=*-*-* 00/6:17:00
Persistent=true

[Install]
WantedBy=timers.target
`
