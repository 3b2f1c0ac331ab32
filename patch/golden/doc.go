// SPDX-License-Identifier: Apache-2.0

// Package golden tests pure functions on golden directories: a must-gather as input, and the expected results next to
// it. `go test -update` writes the results. It needs no API server.
package golden
