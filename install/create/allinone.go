// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/node"
)

// AllInOne returns the Ignition config of an installed image that becomes a cluster of its own with a minimal control
// plane (R-AIO-1, R-AIO-4). The static pods are those of profile kubernetes, since there are no operators. The error
// has all that is wrong.
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
		return nil, err //nolint:wrapcheck // it names the settings
	}
	validity, err := time.ParseDuration(s.Validity)
	if err != nil {
		return nil, fmt.Errorf("%w: validity: %w", ErrInput, err)
	}
	b.AddDir(own, node.AllInOneDir, 0o700)
	b.AddDir(own, node.ManifestDir, 0o700)
	b.AddFile(own, settings)
	b.AddUnit(own, "aiokube.service", unit("Start the control plane of this node", s.Executable(), "aiokube", "ConditionPathExists=!/"+node.AllInOneMarker))
	b.AddUnit(own, "etcd-remove-unformed.service", fmt.Sprintf(removeUnformed, node.EtcdData, node.AllInOneMarker, s.Executable()))
	b.AddUnit(own, "sno-rotate-before-kubelet.service", fmt.Sprintf(rotateBefore, node.AllInOneMarker, s.Executable()))
	b.AddUnit(own, "sno-rotate.service", fmt.Sprintf(rotateUnit, node.AllInOneMarker, s.Executable()))
	b.AddUnit(own, "sno-rotate.timer", rotateTimer(validity))
	errs := []error{extra, in.addManifests(b, node.AllInOneManifests), in.addProgram(b), in.addMember(b)}
	text, err := b.Encode()
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return text, nil
}

// removeUnformed handles a power cut while etcd forms its cluster (U-INS-32). After the installation etcd has committed
// entries. The kubelet starts even if the unit fails.
const removeUnformed = `[Unit]
Description=Remove the data of an etcd that has committed nothing
ConditionPathExists=/%s/member
ConditionPathExists=!/%s
Before=kubelet.service

[Service]
Type=oneshot
ExecStart=/%s remove-unformed-etcd

[Install]
WantedBy=multi-user.target
`

// rotateUnit renews due certificates once the node is installed. A run that cannot finish ends soon, and is repeated.
const rotateUnit = `[Unit]
Description=Renew the certificates of the control plane
ConditionPathExists=/%s

[Service]
Type=oneshot
Restart=on-failure
RestartSec=5
ExecStart=/%s rotate
`

// rotateBefore renews due certificates when the machine starts. The kubelet does not require it: rotate restarts the
// kubelet, which would start this unit at the same time. The kubelet starts even if the unit fails.
const rotateBefore = `[Unit]
Description=Renew the certificates of the control plane before it starts
ConditionPathExists=/%s
Before=kubelet.service

[Service]
Type=oneshot
ExecStart=/%s rotate --before-kubelet

[Install]
WantedBy=multi-user.target
`

var renewals = []struct {
	every    time.Duration
	calendar string
}{
	{6 * time.Hour, "*-*-* 00/6:17:00"},
	{time.Hour, "*-*-* *:17:00"},
	{10 * time.Minute, "*-*-* *:03/10:00"},
	{time.Minute, "*-*-* *:*:00"},
	{15 * time.Second, "*-*-* *:*:00/15"},
}

// rotateTimer returns a timer with at least twenty runs in the validity, so that failed runs can be repeated, and one
// after each start.
func rotateTimer(validity time.Duration) string {
	chosen := renewals[len(renewals)-1]
	for _, r := range slices.Backward(renewals) {
		if 20*r.every <= validity {
			chosen = r
		}
	}
	return fmt.Sprintf(rotateTimerUnit, chosen.calendar)
}

const rotateTimerUnit = `[Unit]
Description=Renew the certificates of the control plane

[Timer]
OnCalendar=%s
OnBootSec=15s
AccuracySec=1s

[Install]
WantedBy=timers.target
`
