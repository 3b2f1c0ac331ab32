// Package patchtest is what tests of patches need: a real API server with OpenShift's own CustomResourceDefinitions, the count of
// write requests from that server's audit log, and golden directories of must-gather-shaped input.
//
// What server-side apply decides (conflicts, owners, defaults, no-ops) is decided by the API server, so it is tested there. A
// fake client gets ownership, dry run and no-ops wrong (U-SSA-10).
//
// One test binary shares one API server, started by the first test that asks for it:
//
//	var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestPatch(t *testing.T) {
//		server := shared.Server(t)
//		namespace, admin := server.Namespace(t), server.Admin(t)
//		...
//	}
//
// This is the only package of sno that imports controller-runtime's envtest; only tests import it.
package patchtest
