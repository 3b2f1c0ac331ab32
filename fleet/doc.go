// SPDX-License-Identifier: Apache-2.0

// Package fleet holds the names that the hub and the spokes of a fleet have in common. The packages below it read and
// decide; each says what of a fleet it is about.
package fleet
