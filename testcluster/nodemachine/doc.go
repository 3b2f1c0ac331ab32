// SPDX-License-Identifier: Apache-2.0

// Package nodemachine runs machines: containers that start systemd, containerd and a real kubelet from a disk. The disk
// is a volume of the engine, filled from the image of kind's nodes (package nodeimage); only the disk outlives a reboot
// or a power cut. It has nothing of a cluster at first, and no kubelet runs without a configuration: callers provide
// both.
package nodemachine
