// SPDX-License-Identifier: Apache-2.0

// Package document reads YAML and JSON with the lines of fields, and reports what is wrong with them.
//
// Decode and the rules of a package return field errors of Kubernetes, which have the path of the field, its value and
// what to do. A document adds file and line to them, so that all faults of an input can be reported at once.
package document
