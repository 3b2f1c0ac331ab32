// SPDX-License-Identifier: Apache-2.0

// Package traffic measures what a cluster's users notice: clients send HTTP requests continuously, and it reports how
// long none of them was answered.
//
// Every request of a Generator has a separate connection, as those of many users, and is sent on schedule, whatever the
// results of earlier ones. Nothing is retried.
package traffic
