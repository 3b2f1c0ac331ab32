// SPDX-License-Identifier: Apache-2.0

// Package rotate renews a rendered control plane in place (R-REN-10): it compares two results, and writes the files
// that differ to a node in an order that is safe at a crash.
package rotate
