// SPDX-License-Identifier: Apache-2.0

// Package controlplane renders and writes the static pods of a machine's own control plane, and applies the manifests
// when its API server is ready. Bootstrap in place and all-in-one nodes use it.
package controlplane
