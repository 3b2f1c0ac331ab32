// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a real API server for tests, with OpenShift's CustomResourceDefinitions and an audit log, and
// without controllers. A fake client gets ownership, dry run and no-ops wrong (U-SSA-10).
//
// One test binary shares one API server, which the first test that needs it starts:
//
//	var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.IngressControllers}})
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestPatch(t *testing.T) {
//		server := shared.Server(t)
//		...
//	}
package apiserver
