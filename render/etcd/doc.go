// SPDX-License-Identifier: Apache-2.0

// Package etcd renders etcd's static pod: the certificates of all members, the endpoints, the control loops of etcd's
// operator in order, and the pod templates of both profiles.
//
// It runs before all other components, because kube-apiserver needs the endpoints and a client certificate. The members
// are known in advance, so the endpoints are written before etcd runs and no second revision follows.
//
// The backup and restore scripts of ConfigMap etcd-scripts are not rendered, only their environment, etcd.env. The
// operator adds them later.
package etcd
