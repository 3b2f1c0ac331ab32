// Package inputs reads the folder of manifests that static pods are rendered from, and checks it.
//
// Read decodes the twelve resources of config.openshift.io and the Nodes, and keeps all else as it is. What is wrong is a Fault
// with file, line, object, field, problem and advice; all are reported at once. Cluster.Settings adds what the caller chose: profile,
// images, version, how long certificates last. Components of package render get the Settings.
//
// Fields is the table of what becomes of each field: it is applied, exported only, ignored with a warning, or refused. The same table
// drives the checks and the documentation, and a test compares it with the API.
//
// It implements R-REN-2, R-REN-3, R-REN-11 and R-REN-12.
package inputs
