// SPDX-License-Identifier: Apache-2.0

// Package verify has the checks of `make verify`: faults that neither the compiler nor the tests find. Every step
// runs, also after a failure, so that all faults are reported at once; a table at the end lists the results.
package verify
