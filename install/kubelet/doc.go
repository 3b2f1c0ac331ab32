// Package kubelet writes the unit and the configuration of a kubelet: of one that belongs to no cluster and runs the static pods of a live
// system, and of one that joins the control plane of its own machine. A person adjusts both by drop-ins in DropInDir.
package kubelet
