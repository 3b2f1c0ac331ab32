// SPDX-License-Identifier: Apache-2.0

// Package proved records which steps of CI have passed on which bytes. The key of a step is the sum of its command,
// its modules and all that they require, the versions of all dependencies and the tools. A step with a recorded key
// is not run again, and reports the record. Failures are never recorded.
package proved
