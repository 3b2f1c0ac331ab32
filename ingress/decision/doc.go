// SPDX-License-Identifier: Apache-2.0

// Package decision decides what the standalone controller writes into IngressController/default of a stock operator.
// Every function is pure.
package decision
