// SPDX-License-Identifier: Apache-2.0

package loop

// StopTimeout is exported for tests.
const StopTimeout = stopTimeout
