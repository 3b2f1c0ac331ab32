// SPDX-License-Identifier: Apache-2.0

// Package nodeimage provides the image of a kind cluster's nodes: kindest/node of the Kubernetes version of
// testcluster/kube if it is loaded or can be pulled, and otherwise an equivalent that is built from Debian's packages
// and the programs of package assets. A build takes some minutes once. The engine and an archive in the cache folder
// keep it; a new engine loads the archive in seconds.
package nodeimage
