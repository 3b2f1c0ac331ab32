// Package ignition builds and extends Ignition configs, and lists their largest parts.
//
// A Builder collects files, folders, units and kernel arguments, each with the name of its source. Two sources of one path or unit are an
// error that names both. Encode writes the lowest version of the spec with all fields, at least 3.2.0, and validates the config with
// Ignition's library. Enrich extends another program's config; conflicts over a path, a unit or a user are errors, so that neither
// silently overrides the other (R-BIP-11, U-INS-8, U-INS-9). Modes are always set: only the owner reads keys.
package ignition
