// SPDX-License-Identifier: Apache-2.0

// Package stock lists properties of objects that the stock operators write, each with its source. The stand-ins must
// write the same; package embeddedtarget checks that on a cluster.
//
// Left out, because these clusters do not have it: Services, Routes, DNS, certificates, images, probes and the
// conditions about them; and a second container of the newest routers. Pods of simulated nodes end at once, whatever
// their grace period is.
package stock

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source is a public repository at a commit. Date is the commit's, empty where only the commit is known.
type Source struct{ Repository, Commit, Date string }

var (
	ingress      = Source{"openshift/cluster-ingress-operator", "acca9642a", "2026-08-06"}
	router       = Source{"openshift/cluster-ingress-operator", "8239fb7f4", ""}
	canary       = Source{"openshift/cluster-ingress-operator", "0b761da27", ""}
	conditions   = Source{"openshift/cluster-ingress-operator", "001aa9373", ""}
	console      = Source{"openshift/console-operator", "684157180", "2026-08-08"}
	webConsole   = Source{"openshift/console-operator", "0bfcf68e5", ""}
	downloads    = Source{"openshift/console-operator", "0e81e17fa", ""}
	auth         = Source{"openshift/cluster-authentication-operator", "f3df4f5b2", "2026-08-07"}
	oauth        = Source{"openshift/cluster-authentication-operator", "03697f803", ""}
	oauthAPI     = Source{"openshift/cluster-authentication-operator", "19971c61b", ""}
	guard        = Source{"openshift/library-go", "72bf34f474bc", "2026-03-18"}
	approver     = Source{"openshift/cluster-machine-approver", "07854fae2", ""}
	approverArgs = Source{"openshift/cluster-machine-approver", "711b4f6ee", ""}
	approverCO   = Source{"openshift/cluster-machine-approver", "6470be8e7", ""}
)

// RouterMinReady is the minReadySeconds of a router, as in the table below.
const RouterMinReady = 30 * time.Second

// IngressControllerFields returns the fields of spec that the ingress operator owns after it has created the default
// IngressController: the replicas, and those that its typed client writes and the API server defaults.
func IngressControllerFields() []string {
	return []string{
		"clientTLS", "closedClientConnectionPolicy", "httpCompression", "httpEmptyRequestsPolicy", "httpErrorCodePages", "idleConnectionTerminationPolicy",
		"replicas", "tuningOptions", "unsupportedConfigOverrides",
	}
}

// Property is one value in one object.
type Property struct {
	Source Source
	Object Object
	// Pointer is a JSON pointer into the object; in a list, [type=Available] is the element of that type.
	Pointer string
	Value   string
}

// Object names an object. An empty Name means any object of the namespace.
type Object struct {
	schema.GroupVersionKind
	client.ObjectKey
}

func apps(kind, namespace, name string) Object {
	return Object{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, client.ObjectKey{Namespace: namespace, Name: name}}
}

var (
	routerDeployment  = apps("Deployment", "openshift-ingress", "router-default")
	canarySet         = apps("DaemonSet", "openshift-ingress-canary", "ingress-canary")
	consoleDeployment = apps("Deployment", "openshift-console", "console")
	downloadsServer   = apps("Deployment", "openshift-console", "downloads")
	oauthServer       = apps("Deployment", "openshift-authentication", "oauth-openshift")
	oauthAPIServer    = apps("Deployment", "openshift-oauth-apiserver", "apiserver")
	machineApprover   = apps("Deployment", "openshift-cluster-machine-approver", "machine-approver")
	ingressController = Object{
		schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"},
		client.ObjectKey{Namespace: "openshift-ingress-operator", Name: "default"},
	}
	approverOperator = Object{
		schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"}, client.ObjectKey{Name: "machine-approver"},
	}
	etcdGuard = Object{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, client.ObjectKey{Namespace: "openshift-etcd"}}
)

const (
	podSpec    = "/spec/template/spec"
	apart      = podSpec + "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0"
	requests   = "/spec/template/spec/containers/0/resources/requests"
	management = "/spec/template/metadata/annotations/target.workload.openshift.io~1management"
	preferred  = `"{\"effect\": \"PreferredDuringScheduling\"}"`

	clusterCritical, nodeCritical = `"system-cluster-critical"`, `"system-node-critical"`

	masterToleration = `{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"}`
	unreachable      = `{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":120}`
	notReady         = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":120}`
)

// Properties returns those of every cluster that runs its own control plane, whatever its topology.
func Properties() []Property {
	return []Property{
		{ingress, routerDeployment, "/spec/minReadySeconds", "30"},
		{ingress, routerDeployment, podSpec + "/terminationGracePeriodSeconds", "3600"},
		{router, routerDeployment, "/spec/progressDeadlineSeconds", "600"},
		{router, routerDeployment, podSpec + "/priorityClassName", clusterCritical},
		{router, routerDeployment, management, preferred},
		{router, routerDeployment, requests, `{"cpu":"100m","memory":"256Mi"}`},
		{router, routerDeployment, podSpec + "/tolerations", `[{"key":"kubernetes.io/e2e-evict-taint-key","operator":"Equal","value":"evictTaintVal","effect":"NoExecute"}]`},
		{ingress, routerDeployment, podSpec + "/topologySpreadConstraints/0/topologyKey", `"topology.kubernetes.io/zone"`},
		{ingress, routerDeployment, podSpec + "/topologySpreadConstraints/0/whenUnsatisfiable", `"ScheduleAnyway"`},
		{ingress, routerDeployment, podSpec + "/topologySpreadConstraints/0/maxSkew", "1"},

		{ingress, ingressController, "/metadata/finalizers", `["ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"]`},
		{conditions, ingressController, "/status/conditions/[type=Admitted]/status", `"True"`},
		{conditions, ingressController, "/status/conditions/[type=DeploymentAvailable]/type", `"DeploymentAvailable"`},
		{conditions, ingressController, "/status/conditions/[type=DeploymentReplicasMinAvailable]/type", `"DeploymentReplicasMinAvailable"`},
		{conditions, ingressController, "/status/conditions/[type=DeploymentReplicasAllAvailable]/type", `"DeploymentReplicasAllAvailable"`},
		{conditions, ingressController, "/status/conditions/[type=DeploymentRollingOut]/type", `"DeploymentRollingOut"`},
		{conditions, ingressController, "/status/conditions/[type=LoadBalancerProgressing]/status", `"False"`},
		{conditions, ingressController, "/status/conditions/[type=Available]/type", `"Available"`},
		{conditions, ingressController, "/status/conditions/[type=Progressing]/type", `"Progressing"`},
		{conditions, ingressController, "/status/conditions/[type=Degraded]/type", `"Degraded"`},
		{conditions, ingressController, "/status/conditions/[type=Upgradeable]/status", `"True"`},
		{conditions, ingressController, "/status/conditions/[type=EvaluationConditionsDetected]/status", `"False"`},

		{canary, canarySet, podSpec + "/nodeSelector", `{"kubernetes.io/os":"linux"}`},
		{canary, canarySet, podSpec + "/tolerations", `[{"key":"node-role.kubernetes.io/infra","operator":"Exists"}]`},
		{canary, canarySet, podSpec + "/priorityClassName", clusterCritical},
		{canary, canarySet, management, preferred},
		{canary, canarySet, requests, `{"cpu":"10m","memory":"20Mi"}`},
		{canary, canarySet, "/spec/updateStrategy/rollingUpdate/maxUnavailable", `"10%"`},
		{ingress, canarySet, podSpec + "/containers/0/ports", `[{"containerPort":8443,"protocol":"TCP"},{"containerPort":8888,"protocol":"TCP"}]`},

		{webConsole, consoleDeployment, podSpec + "/terminationGracePeriodSeconds", "40"},
		{webConsole, consoleDeployment, podSpec + "/priorityClassName", clusterCritical},
		{webConsole, consoleDeployment, management, preferred},
		{webConsole, consoleDeployment, requests, `{"cpu":"10m","memory":"100Mi"}`},
		{webConsole, consoleDeployment, podSpec + "/tolerations", "[" + masterToleration + "," + unreachable + "]"},
		{console, consoleDeployment, podSpec + "/nodeSelector", `{"node-role.kubernetes.io/master":""}`},
		{downloads, downloadsServer, podSpec + "/terminationGracePeriodSeconds", "5"},
		{downloads, downloadsServer, podSpec + "/priorityClassName", clusterCritical},
		{downloads, downloadsServer, management, preferred},
		{downloads, downloadsServer, podSpec + "/containers/0/name", `"download-server"`},
		{downloads, downloadsServer, requests, `{"cpu":"10m","memory":"50Mi"}`},
		{downloads, downloadsServer, podSpec + "/tolerations", "[" + masterToleration + "," + unreachable + "]"},
		{console, downloadsServer, podSpec + "/nodeSelector", `{"kubernetes.io/os":"linux","node-role.kubernetes.io/master":""}`},

		{oauth, oauthServer, podSpec + "/terminationGracePeriodSeconds", "40"},
		{oauth, oauthServer, podSpec + "/priorityClassName", clusterCritical},
		{oauth, oauthServer, management, preferred},
		{oauth, oauthServer, requests, `{"cpu":"10m","memory":"50Mi"}`},
		{oauth, oauthServer, podSpec + "/tolerations", "[" + masterToleration + "," + unreachable + "," + notReady + "]"},
		{auth, oauthServer, podSpec + "/nodeSelector", `{"node-role.kubernetes.io/master":""}`},
		{oauthAPI, oauthAPIServer, "/spec/selector/matchLabels", `{"app":"openshift-oauth-apiserver","apiserver":"true"}`},
		{oauthAPI, oauthAPIServer, podSpec + "/containers/0/name", `"oauth-apiserver"`},
		{auth, oauthAPIServer, "/spec/template/metadata/labels/oauth-apiserver-anti-affinity", `"true"`},
		{auth, oauthAPIServer, apart + "/topologyKey", `"kubernetes.io/hostname"`},
		{auth, oauthAPIServer, apart + "/labelSelector/matchLabels", `{"app":"openshift-oauth-apiserver","apiserver":"true","oauth-apiserver-anti-affinity":"true"}`},
		{oauthAPI, oauthAPIServer, podSpec + "/terminationGracePeriodSeconds", "70"},
		{oauthAPI, oauthAPIServer, podSpec + "/priorityClassName", nodeCritical},
		{oauthAPI, oauthAPIServer, requests, `{"cpu":"150m","memory":"200Mi"}`},
		{oauthAPI, oauthAPIServer, podSpec + "/tolerations", "[" + masterToleration + "," + unreachable + "," + notReady + "]"},
		{auth, oauthAPIServer, "/spec/strategy/rollingUpdate", `{"maxUnavailable":1,"maxSurge":0}`},

		{approver, machineApprover, "/spec/strategy", `{"type":"Recreate"}`},
		{approver, machineApprover, podSpec + "/hostNetwork", "true"},
		{approver, machineApprover, podSpec + "/priorityClassName", clusterCritical},
		{approver, machineApprover, podSpec + "/nodeSelector", `{"node-role.kubernetes.io/master":""}`},
		{approver, machineApprover, podSpec + "/tolerations", "[" + masterToleration + "," + unreachable + "," + notReady + "]"},
		{approver, machineApprover, podSpec + "/containers/0/name", `"kube-rbac-proxy"`},
		{approver, machineApprover, requests, `{"cpu":"10m","memory":"20Mi"}`},
		{approver, machineApprover, podSpec + "/containers/1/name", `"machine-approver-controller"`},
		{approver, machineApprover, podSpec + "/containers/1/resources/requests", `{"cpu":"10m","memory":"50Mi"}`},
		{approverArgs, machineApprover, podSpec + "/containers/1/args", `["--config=/var/run/configmaps/config/config.yaml","-v=2","--logtostderr",` +
			`"--leader-elect=true","--leader-elect-lease-duration=137s","--leader-elect-renew-deadline=107s","--leader-elect-retry-period=26s",` +
			`"--leader-elect-resource-namespace=openshift-cluster-machine-approver","--api-group-version=machine.openshift.io/v1beta1",` +
			`"--max-concurrent-reconciles=10"]`},
		{approver, machineApprover, podSpec + "/volumes/0/configMap/name", `"machine-approver-config"`},
		{approver, machineApprover, podSpec + "/volumes/0/configMap/optional", "true"},
		{approverCO, approverOperator, "/status/conditions/[type=Available]/status", `"True"`},
		{approverCO, approverOperator, "/status/conditions/[type=Degraded]/status", `"False"`},
		{approverCO, approverOperator, "/status/conditions/[type=Progressing]/status", `"False"`},
		{approverCO, approverOperator, "/status/conditions/[type=Upgradeable]/status", `"True"`},
	}
}

// HostNetworkProperties returns additional properties of a router with host network.
func HostNetworkProperties() []Property {
	return []Property{
		{ingress, routerDeployment, "/spec/strategy/rollingUpdate", `{"maxUnavailable":"25%","maxSurge":0}`},
		{conditions, ingressController, "/status/conditions/[type=LoadBalancerManaged]/status", `"False"`},
	}
}

// GuardProperties returns additional properties of each etcd guard on clusters with several control-plane nodes.
func GuardProperties() []Property {
	return []Property{
		{guard, etcdGuard, "/spec/priorityClassName", clusterCritical},
		{guard, etcdGuard, "/spec/terminationGracePeriodSeconds", "3"},
		{guard, etcdGuard, "/spec/serviceAccountName", `"guard-sa"`},
		{guard, etcdGuard, "/spec/automountServiceAccountToken", "false"},
		{guard, etcdGuard, "/spec/hostUsers", "false"},
		{guard, etcdGuard, "/spec/tolerations/0", `{"operator":"Exists"}`},
		{guard, etcdGuard, "/spec/containers/0/resources/requests", `{"cpu":"10m","memory":"5Mi"}`},
		{guard, etcdGuard, "/metadata/annotations/target.workload.openshift.io~1management", preferred},
	}
}
