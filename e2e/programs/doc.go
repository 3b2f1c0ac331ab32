// SPDX-License-Identifier: Apache-2.0

// Package programs builds the repository's programs, which run as processes outside of embedded clusters.
package programs
