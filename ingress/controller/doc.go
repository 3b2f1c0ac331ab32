// Package controller patches IngressController/default from outside, beside a stock ingress operator: gather, check, decide,
// apply, report. Every decision is made by package ingress; what is here talks to the cluster.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them.
package controller
