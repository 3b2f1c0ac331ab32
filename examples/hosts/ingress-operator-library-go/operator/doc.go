// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a library-go ingress operator: informers, one factory controller, resourceapply
// and events. desired.go calls the vendored module and has no client; sync.go reads and writes. A test checks that it
// does not import controller-runtime.
package operator
