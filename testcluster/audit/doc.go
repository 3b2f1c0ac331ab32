// SPDX-License-Identifier: Apache-2.0

// Package audit reads audit logs of an API server.
package audit
