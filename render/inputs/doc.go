// SPDX-License-Identifier: Apache-2.0

// Package inputs reads and checks the folder of manifests from which static pods are rendered.
//
// Read decodes the twelve resources of config.openshift.io, each named cluster, and at least one control-plane Node.
// All are required. They, Secrets and ConfigMaps are decoded strictly; other objects are kept in Cluster.Others. All
// faults are reported at once, each with file, line, object, field, problem and advice. Cluster.Settings adds the
// caller's options.
//
// Fields defines what is done with each field: applied, exported, ignored or refused. It drives
// the checks and the documentation, and a test compares it with the API.
//
// It implements R-REN-2, R-REN-3, R-REN-11 and R-REN-12.
package inputs
