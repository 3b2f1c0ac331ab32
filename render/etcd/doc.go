// Package etcd renders etcd's static pod: the certificates of all members, the endpoints by which others find them, the control loops
// of etcd's operator in order, and the templates of the pod for both profiles.
//
// It comes before all other components: kube-apiserver needs the endpoints and a client certificate. The members are known
// beforehand, so the endpoints are written before anybody observes them, and no second revision follows when etcd runs.
//
// The scripts for backup and restore that the stock operator puts into ConfigMap etcd-scripts are not rendered, only the environment
// that they read, etcd.env. An operator that starts later adds them.
package etcd
