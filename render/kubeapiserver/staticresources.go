// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import "embed"

// Objects that are created first; for the approval of kubelets' certificates see the package's documentation (R-APP-3).
//
//go:embed resources
var resources embed.FS
