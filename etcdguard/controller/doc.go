// SPDX-License-Identifier: Apache-2.0

// Package controller carries out the decisions of package etcdguard, one write at a time, and reports the state. It
// decides on live reads. Every write has the UID and the resourceVersion of the object that was read.
package controller
