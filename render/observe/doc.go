// Package observe has what the operators of several components observe in the resources of config.openshift.io: pure functions,
// and the observers that call them with what the API has.
//
// An observer returns a part of an operator's spec.observedConfig. Merge puts the parts over a component's default configuration,
// Flags makes the command line of the result.
package observe
