// SPDX-License-Identifier: Apache-2.0

// Package etcd stands in for cluster-etcd-operator: the guards of quorum with their budget (U-ETC-7, U-ETC-9), and, by
// the vendored module, the members of etcd. It runs no etcd.
package etcd
