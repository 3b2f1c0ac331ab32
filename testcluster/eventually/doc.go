// SPDX-License-Identifier: Apache-2.0

// Package eventually waits for conditions in tests without Gomega.
package eventually
