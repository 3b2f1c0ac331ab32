// SPDX-License-Identifier: Apache-2.0

// Package api lists the exported declarations of the released libraries. The golden file of a library,
// hack/api/MODULE.txt, has a line for each, and marks the differences from the last release: "+ " for a new line, "- "
// for a line that is gone.
package api
