// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import "github.com/solonode/sno/render/store"

const (
	namespace         = "openshift-kube-controller-manager"
	operatorNamespace = "openshift-kube-controller-manager-operator"
	managedNamespace  = "openshift-config-managed"
)

// component is used in file names, leases, and as the owner of certificates.
const component = "kube-controller-manager"

const (
	port        = 10257
	policyPort  = 10357
	recoverPort = 9443
)

var (
	signerSigner       = store.Object{Namespace: operatorNamespace, Name: "csr-signer-signer"}
	signerSignerCA     = store.Object{Namespace: operatorNamespace, Name: "csr-controller-signer-ca"}
	signer             = store.Object{Namespace: operatorNamespace, Name: "csr-signer"}
	signerCA           = store.Object{Namespace: operatorNamespace, Name: "csr-signer-ca"}
	controllerCA       = store.Object{Namespace: operatorNamespace, Name: "csr-controller-ca"}
	activeSigner       = store.Object{Namespace: namespace, Name: "csr-signer"}
	sharedControllerCA = store.Object{Namespace: managedNamespace, Name: "csr-controller-ca"}
	nextKey            = store.Object{Namespace: operatorNamespace, Name: "next-service-account-private-key"}
	key                = store.Object{Namespace: namespace, Name: "service-account-private-key"}
	publicKeys         = store.Object{Namespace: managedNamespace, Name: "sa-token-signing-certs"}
)
