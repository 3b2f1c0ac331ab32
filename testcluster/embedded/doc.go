// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)
// with simulated nodes (kwok) as child processes. It needs no container engine, no root and no image registry. Several
// clusters can run in parallel.
//
// The scheduler and the controllers are real, so rollouts, deadlocks, rescheduling and evictions behave as on a real
// cluster. The kubelets are simulated: there is no traffic, no probe, no image, no certificate request, no reboot and
// no static pod.
//
// # Lifetime
//
// A cluster ends with Stop, with the context of Start, and with this process. For an orderly end on SIGINT and SIGTERM,
// create that context with os/signal.NotifyContext. When this process is killed, its components end too: on Linux by
// Pdeathsig, elsewhere by a watcher that holds the reading end of a pipe. The next Start removes the folder that was
// left, which it recognises by its free lock.
//
// envtest's control plane is not used: it hides its processes and ends them with SIGTERM only, so it can neither kill
// nor stop and continue one, and they outlive a process that is killed.
//
// Every component is ended with SIGKILL: nothing in the folder is needed later unless it is kept, and the operating
// system has the data of etcd and the audit log by then.
//
// # Folder
//
// Each cluster has a folder with the kubeconfig files, one <component>.log each, audit.log, the certificates and etcd's
// data. etcd listens on a Unix socket in it, which only the owner can use, so the API server has the only TCP port of a
// cluster.
package embedded
