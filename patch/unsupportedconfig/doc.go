// Package unsupportedconfig reads single switches out of spec.unsupportedConfigOverrides, the schemaless field in which OpenShift's
// operators take overrides that nobody supports. The single-node ones are replaced by the topology (seed 004), but they are honored as
// long as they are there.
package unsupportedconfig
