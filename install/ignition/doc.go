// Package ignition builds Ignition configs, adds to them, and lists what takes the room in them.
//
// A Builder collects files, folders, units and kernel arguments, each with the name of where it comes from; two of them for one path
// or unit are an error that names both. Encode writes the lowest version of the spec that can say it all, from 3.2.0 up, and holds it
// against Ignition's own library. Enrich adds to the config of another program: where both have something to say about a path, a unit
// or a user it is an error too, so that neither overrides the other silently (R-BIP-11, U-INS-8, U-INS-9).
//
// Modes are always set: keys are readable by their owner only.
package ignition
