// SPDX-License-Identifier: Apache-2.0

// Package installconfig reads openshift-install's install-config.yaml, and reports all that is wrong at once.
package installconfig
