// SPDX-License-Identifier: Apache-2.0

package command

import "golang.org/x/sys/unix"

// synchronized reports whether a time server sets the clock, as the kernel knows it from chronyd or systemd-timesyncd.
func synchronized() bool {
	var status unix.Timex
	state, err := unix.Adjtimex(&status)
	return err == nil && state != unix.TIME_ERROR && status.Status&unix.STA_UNSYNC == 0
}
