// SPDX-License-Identifier: Apache-2.0

// Package machines is the Ginkgo suite of what boots: machines from the configs of sno-install, in place and all in
// one, and control planes from the static pods of sno-render and by kubeadm. The machines are containers with their own
// disks (testcluster/nodemachine); Ignition, systemd, containerd, CRI-O and the kubelet are real.
package machines
