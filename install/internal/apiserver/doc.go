// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts API servers for tests.
package apiserver
