// Package patchtest is for tests of patches: a real API server with OpenShift's own CustomResourceDefinitions, the write requests in its
// audit log, and golden directories of must-gather-shaped input. A fake client gets ownership, dry run and no-ops wrong (U-SSA-10).
//
// One test binary shares one API server, started by the first test that needs it:
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
// A module's controller is tested with a Suite: a Cluster in which the test acts as all other clients, a Reconciler that reconciles when the test
// calls it, and a Program that runs with the rights of the module's manifests. A FakeVersionOperator acts as the cluster-version-operator.
package patchtest
