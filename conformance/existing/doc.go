// SPDX-License-Identifier: Apache-2.0

// Package existing connects to an existing cluster through a kubeconfig and checks the account's permissions. It
// changes nothing.
package existing
