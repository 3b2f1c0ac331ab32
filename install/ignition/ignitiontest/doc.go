// SPDX-License-Identifier: Apache-2.0

// Package ignitiontest tests configs with ignition-validate and the Ignition engine. tools/run builds each
// from source once. The engine takes some minutes then, and needs libblkid's headers, which Debian's apt-get installs.
package ignitiontest
