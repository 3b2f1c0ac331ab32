// SPDX-License-Identifier: Apache-2.0

// Package payload has the operators of a release payload render the manifests and static pods of a bootstrap phase,
// with their own render commands, in the order of openshift-install's bootkube.sh (U-REN-1). The renders ignore missing
// keys and end successfully, so what they read and write is checked here (U-REN-39).
package payload
