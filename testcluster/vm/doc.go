// SPDX-License-Identifier: Apache-2.0

// Package vm runs virtual machines with QEMU: firmware, a disk that loses what was not flushed when the power is cut, a
// CD-ROM, a serial console, and a network without root, whose ports are forwarded. Where KVM does not work, QEMU
// emulates the processor, which makes a boot of seconds one of minutes. What they boot is built once, from Debian's
// packages, into the cache folder. Package nodemachine has faster machines without a kernel of their own.
package vm
