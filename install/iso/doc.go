// Package iso puts an Ignition config into a live ISO of CoreOS, and reads it back, by the same rules as coreos-installer (R-BIP-5,
// U-INS-18).
//
// Such an ISO has an area for it, usually the file images/ignition.img of 256 KiB. /coreos/igninfo.json names the file, and a part of it
// where only a part is meant; ISOs before it are of the same file name, and older ones have a header in the last 24 bytes of the system
// area. The area holds zeros, or a cpio archive with the file config.ign, compressed and filled up with zeros: the kernel reads it as
// another initramfs.
package iso
