// SPDX-License-Identifier: Apache-2.0

// Package standin runs stand-ins for OpenShift's operators on test clusters: what today's operator does to the objects
// that the modules depend on, and nothing else. Each operator is a package below, with the facts that it follows; with
// --stock it decides as today's operator, without it by the functions that its module offers for vendoring.
//
// The program is cmd/stand-in-operators, with a subcommand for each operator.
package standin
