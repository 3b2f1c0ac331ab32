// Package controller shapes the console and downloads Deployments from outside, beside a stock console operator or where
// there is none: gather, check, decide, apply, report. Every decision is made by package console; what is here talks to the
// cluster.
//
// # Order
//
// Taking downloads over is a walk over two objects, ClusterVersion and Deployment, that no transaction holds together. Each
// look carries out one [console.Decision], in which at most one step of the walk is a write. Because what the cache shows may
// be old, the object that a step relies on is read again, from the API server, right before the write; when what counts of it
// has changed, nothing is written and the next look decides anew.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them.
package controller
