// Package etcdmembers runs real members of etcd beside an embedded cluster, as many as the cluster that it plays has. The embedded cluster's own
// etcd, in which its API server keeps everything, has a single member always.
package etcdmembers
