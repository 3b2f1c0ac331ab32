// SPDX-License-Identifier: Apache-2.0

// Package installing boots machines from the configs of sno-install: the real Ignition engine writes the disk before
// systemd starts, and containerd and a kubelet run what sno-install has rendered.
package installing
