// Package controller writes what package auth decides, from outside, beside a stock authentication operator: the override on the
// operator's Authentication, and the shape of the two Deployments where nobody else shapes them. Every decision is made by
// package auth; what is here talks to the cluster.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them.
package controller
