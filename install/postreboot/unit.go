// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"fmt"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Unit returns the systemd unit of this command. The shell removes the unit after the program has removed itself, also
// at the next boot (R-BIP-18, U-INS-15). The type is not oneshot: without the unit's file systemd forgets the type,
// applies the time limit of a start, and ends the shell as failed (U-INS-31).
func Unit(s node.Settings) string {
	program, unit := "/"+s.Executable(), "/"+node.UnitDir+"/"+node.PostRebootUnit
	link := "/" + node.UnitDir + "/multi-user.target.wants/" + node.PostRebootUnit
	return fmt.Sprintf(`[Unit]
Description=Finish the installation of this node
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart=/bin/sh -ec 'if test -e %[1]s; then %[1]s post-reboot; fi; rm -f %[2]s %[3]s; systemctl daemon-reload'
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=%[4]d

[Install]
WantedBy=multi-user.target
`, program, unit, link, phase.ExitInput)
}
