// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package shell

import "os/exec"

// Without process groups only the command itself ends.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) bool { return false }
