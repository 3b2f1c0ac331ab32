package postreboot

import (
	"fmt"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Unit returns the text of the unit that runs this command after the restart. The program removes itself before the
// unit can be removed, so the shell removes the unit, also at the next boot when the machine was switched off in
// between (R-BIP-18, U-INS-15).
//
// It is no oneshot: with the file systemd forgets the type, takes its time limit for a start that still goes on, and
// ends the shell as failed (U-INS-31).
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
