// Package controller keeps the stock machine approver from approving client certificates on one source's word, one write at a time:
// gather, decide, write, and all over again until there is nothing to write; then report. It approves nothing itself.
//
// Every decision is made on what the API server says at that moment, not on a cache: the watches only tell when to look. Every
// write is bound to the object that was decided on, by UID and resourceVersion, and is refused when it has changed since.
//
// Now and then it also reads the certificate signing requests, page by page, and calls the kubelets, a few at a time, so that
// nobody finds out by an expired cluster that a request waits or that a certificate was not renewed.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them. Requests are only
// read.
package controller
