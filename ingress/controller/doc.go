// Package controller patches IngressController/default where the stock ingress operator does not follow the topology. Package ingress
// makes every decision. config/rbac/role.yaml is generated from the markers in rbac.go.
package controller
