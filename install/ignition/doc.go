// SPDX-License-Identifier: Apache-2.0

// Package ignition builds and extends Ignition configs.
//
// A Builder collects files, folders, units and kernel arguments, each with the name of its source. Two sources of one
// path or unit are an error that names both. Encode writes the lowest version of the spec with all fields, at least
// 3.2.0, and validates the config with Ignition's library. Enrich extends another program's config; conflicts over a
// path, a unit or a user are errors, so that neither silently overrides the other (R-BIP-11, U-INS-8, U-INS-9). Modes
// are always set: only the owner reads keys.
//
// A user's folder for AddExtra has:
//
//	units/NAME              a unit, enabled if it has an [Install] section
//	units/NAME.d/*.conf     drop-ins of a unit
//	files/                  a tree that is copied to the root, with its modes
//	kernel-arguments/*.conf kernel arguments, one on each line; lines that begin with # are comments
package ignition
