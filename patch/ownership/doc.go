// Package ownership reads metadata.managedFields: who owns which field of an object, whether a patch is already on it, and
// what a patch would change. Everything here is pure; the answers come from the object alone.
//
// Server-side apply decides conflicts by the same data, so a decision taken here and the API server's own answer agree
// unless somebody writes in between, which the API server then reports.
package ownership
