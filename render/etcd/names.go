// SPDX-License-Identifier: Apache-2.0

package etcd

import "github.com/solonode/sno/render/store"

const (
	namespace         = "openshift-etcd"
	operatorNamespace = "openshift-etcd-operator"
	configNamespace   = "openshift-config"
)

const component = "etcd"

const (
	clientPort  = 2379
	peerPort    = 2380
	healthPort  = 2381 // of profile kubernetes, as kubeadm's
	proxyPort   = 9977
	serverPort  = 9978 // etcd's metrics in profile openshift
	metricsPort = 9979
	readyzPort  = 9980
)

func in(name string) store.Object { return store.Object{Namespace: namespace, Name: name} }

var (
	signer        = in("etcd-signer")
	signerCA      = in("etcd-ca-bundle")
	metricsSigner = in("etcd-metric-signer")
	metricsCA     = in("etcd-metrics-ca-bundle")
	client        = in("etcd-client")
	metricsClient = in("etcd-metric-client")
	allCerts      = in("etcd-all-certs")
	allBundles    = in("etcd-all-bundles")
	endpoints     = in("etcd-endpoints")
)

func peer(node string) store.Object           { return in("etcd-peer-" + node) }
func serving(node string) store.Object        { return in("etcd-serving-" + node) }
func servingMetrics(node string) store.Object { return in("etcd-serving-metrics-" + node) }
