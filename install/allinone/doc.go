// SPDX-License-Identifier: Apache-2.0

// Package allinone starts a minimal control plane without operators on the machine itself, and joins its kubelet.
//
// The phases of the installation:
//
//	preflight         check that the image has kubelet, container runtime and CNI plugins
//	render            render the static pods
//	static-pods       write them, and what the kubelet needs to request its certificate
//	api               wait until the API server is ready
//	apply-manifests   apply every manifest, except kinds that only operators act on
//	join              approve the kubelet's requests, and wait until the node is Ready
//	finish            write a marker, so that later boots skip all this
package allinone
