// Package operator is a library-go ingress operator in miniature: informers, one factory controller whose sync brings
// everything to where it belongs, resourceapply for what it writes, and events for what it did.
//
// desired.go is where the vendored module is called; it has no client. sync.go reads and writes. Nothing here, nor anything
// it imports, is controller-runtime, and a test says so.
package operator
