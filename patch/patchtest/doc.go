// SPDX-License-Identifier: Apache-2.0

// Package patchtest tests patches on a real API server with OpenShift's CustomResourceDefinitions and an audit log, and
// on golden must-gathers. A fake client gets ownership, dry run and no-ops wrong (U-SSA-10).
//
// One test binary shares one API server, which the first test that needs it starts:
//
//	var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestPatch(t *testing.T) {
//		server := shared.Server(t)
//		...
//	}
//
// A module's controller is tested with a [Suite].
package patchtest
