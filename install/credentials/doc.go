// SPDX-License-Identifier: Apache-2.0

// Package credentials makes the credentials of a new cluster, and keeps them in a folder for the next run: the
// cluster's identity, the administrator's kubeconfig and password, and the CA of the machine-config server.
package credentials
