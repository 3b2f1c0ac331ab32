// Package workload turns the answers of the topology module into the fields of Deployments and PodDisruptionBudgets. It exists
// because topology does not depend on k8s.io/api and every module that shapes a workload needs the same few conversions.
package workload
