// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a client of the API server for single objects, on net/http alone: it applies, follows a watch,
// and elects a leader. client-go would bring in more modules than the operator itself needs. See README.md.
package apiserver
