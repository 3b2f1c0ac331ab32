// Package embedded runs a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler) with simulated nodes
// (kwok) as child processes of this one: no container engine, no root, no image registry. Several clusters can run side by side.
//
// Because the scheduler and the controllers are the real ones, Deployments roll, deadlock, float and get evicted as they do in life. The
// kubelets are not: there is no traffic, no probe, no image, no certificate request, no reboot and no static pod.
//
// # Life and death
//
// A cluster ends with Stop, with the context that Start was given, and with this process. A process that is to end tidily on SIGINT and
// SIGTERM makes that context with os/signal.NotifyContext. A process that dies without a chance to tidy up, even of SIGKILL, takes its components
// along: on Linux the kernel ends them (Pdeathsig), elsewhere a watcher does that holds the reading end of a pipe. The folder that it leaves
// behind is removed by the next Start, which recognises it by its free lock.
//
// The control plane of envtest is not used for etcd and the API server: it hides its processes and ends them with SIGTERM only, so it can neither
// cut the power nor stop and continue one, and they outlive a process that is killed.
//
// Every component is ended with SIGKILL: nothing in the folder outlives the cluster unless it is kept, and what etcd and the audit log have
// written has reached the operating system by then.
//
// # Folder
//
// Each cluster has a folder with the kubeconfig files, one <component>.log each, audit.log, the certificates and etcd's data. etcd listens on
// a Unix socket in it, which only the owner can reach, so the API server's is the only TCP port that a cluster takes.
package embedded
