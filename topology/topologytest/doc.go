// SPDX-License-Identifier: Apache-2.0

// Package topologytest has the values of a topology for tests of modules.
package topologytest
