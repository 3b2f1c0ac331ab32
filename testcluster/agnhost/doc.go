// SPDX-License-Identifier: Apache-2.0

// Package agnhost provides the image agnhost of Kubernetes' end-to-end tests without a registry: the program of package
// assets on a file system of Debian's packages, where Kubernetes has Alpine's. It lacks iperf, an old CoreDNS, and the
// images of its fake registry, which no conformance test uses. A build takes some minutes once.
package agnhost
