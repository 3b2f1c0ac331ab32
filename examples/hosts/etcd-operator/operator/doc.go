// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a controller-runtime etcd operator.
//
//   - vendored.go contains the calls by which an operator uses github.com/solonode/sno/etcdguard.
//   - stock.go is the guard controller of the stock operator, for comparison (--stock).
//   - guards.go reconciles the guards and their budget; members.go reads and removes members of etcd.
//   - etcd.go is the client of etcd.
//   - status.go and write.go report and write what differs.
package operator
