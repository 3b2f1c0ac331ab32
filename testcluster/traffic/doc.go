// SPDX-License-Identifier: Apache-2.0

// Package traffic measures what a cluster's users notice: it sends HTTP requests continuously and reports how long none
// of them was answered.
//
// Every request has a separate connection, as those of many users, and is sent on schedule, whatever the results of
// earlier ones. Nothing is retried.
package traffic
