// Package controller carries out what package etcdguard decides, one write at a time, and reports. Every decision is made on live reads, and every
// write is bound to the object that was read, by UID and resourceVersion. config/rbac/role.yaml is generated from the markers in rbac.go.
package controller
