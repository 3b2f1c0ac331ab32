// Package controlplane brings up the control plane of one node on a machine with a real kubelet (testcluster/nodemachine), in two ways: as kubeadm does it, and with
// the static pods that sno-render has rendered. It times both, and holds what must be true of them; `cmd/sno-node` does both in the same run.
package controlplane
