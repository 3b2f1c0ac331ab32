// Package unsupportedconfig reads single switches out of spec.unsupportedConfigOverrides, the schemaless field in which
// OpenShift's operators take overrides that nobody supports. The topology takes the place of the single-node ones
// (R-ETC-1, R-AUTH-1), but they are honored as long as they are there.
package unsupportedconfig
