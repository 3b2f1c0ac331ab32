package postreboot

import (
	"fmt"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Unit returns the systemd unit of this command. The program removes itself first, so the shell removes the unit, also at the next boot if
// the machine was switched off in between (R-BIP-18, U-INS-15).
//
// The type is not oneshot: without its file systemd forgets the type, applies the time limit of a start, and ends the shell as failed
// (U-INS-31).
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
