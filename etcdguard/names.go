// SPDX-License-Identifier: Apache-2.0

package etcdguard

// Name is the module's name, in its field owner, annotations, metrics and flags.
const Name = "etcdguard"

// Names of objects.
const (
	Namespace      = "openshift-etcd"    // of etcd and its guards
	GuardName      = "etcd-quorum-guard" // the Deployment and its PodDisruptionBudget (U-ETC-5)
	PodsBudgetName = "etcd-guard-pdb"    // the budget over the guard pods of current operators (U-ETC-7)
	ClientSecret   = "etcd-client"       // the Secret with the client certificate for etcd
	CABundle       = "etcd-ca-bundle"    // the ConfigMap with the CA of etcd
	OperatorName   = "cluster"           // the etcd operator's own resource
)

// OverrideKey is the deprecated key in unsupportedConfigOverrides (U-ETC-2).
const OverrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"

// GuardLabels returns the labels of the Deployment's pods, podLabels those of current operators' guard pods.
func GuardLabels() map[string]string { return map[string]string{"k8s-app": GuardName} }
func podLabels() map[string]string   { return map[string]string{"app": "guard"} }
