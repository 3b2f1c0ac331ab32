// SPDX-License-Identifier: Apache-2.0

// Package monitor shows from another machine how far an installation is: by an endpoint while it runs, by a ConfigMap
// of the cluster afterwards (R-BIP-3). Both have the phases' statuses without secrets. Wait waits for its end.
package monitor
