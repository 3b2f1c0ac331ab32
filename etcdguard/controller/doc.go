// Package controller carries out what package etcdguard decides, one write at a time: gather, decide, write, and all over again until
// there is nothing to write; then report.
//
// Every decision is made on what the API server says at that moment, not on a cache: the watches only tell when to look. Every
// write is bound to the object that was decided on, by UID and resourceVersion, and is refused when it has changed since. For one reason only
// something is not read again before a write: that the write is bound to it, and nothing but it can have changed.
//
// The members of etcd and their health come from etcd itself, by the client certificate in the cluster. Who cannot read them does
// not know them, and nothing is loosened then.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them.
package controller
