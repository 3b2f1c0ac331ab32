// SPDX-License-Identifier: Apache-2.0

// Package iso puts an Ignition config into a live ISO of CoreOS, and reads it back, as coreos-installer does (R-BIP-5,
// U-INS-18).
//
// Such an ISO has an area for the config, usually the file images/ignition.img of 256 KiB. /coreos/igninfo.json has the
// name of the file and optionally the part of it. Earlier ISOs have a file of the same name, and older ones a header in
// the last 24 bytes of the system area. The area has zeros, or a compressed cpio archive with the file config.ign,
// padded with zeros, which the kernel reads as another initramfs.
package iso
