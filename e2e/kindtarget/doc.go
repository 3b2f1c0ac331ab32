// Package kindtarget puts a scenario on a cluster of real kubelets: the stand-ins of the stock operators beside it, and our controllers as pods of it, from
// images that are built here, by their own config/ folders and with no other rights. What the conformance suite does not show there is an Experiment.
package kindtarget
