module github.com/solonode/sno/testcluster/standin

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	github.com/google/go-cmp v0.7.0
	github.com/openshift/api v0.0.0-20260318185450-1f2fa3f09f4e
	github.com/openshift/client-go v0.0.0-20260317180604-743f664b82d1
	github.com/solonode/sno/approver v0.1.0
	github.com/solonode/sno/auth v0.1.0
	github.com/solonode/sno/console v0.1.0
	github.com/solonode/sno/etcdguard v0.1.0
	github.com/solonode/sno/ingress v0.1.0
	github.com/solonode/sno/machineconfig v0.1.0
	github.com/solonode/sno/patch v0.1.0
	github.com/solonode/sno/topology v0.1.0
	k8s.io/api v0.35.2
	k8s.io/apimachinery v0.35.2
	k8s.io/client-go v0.35.2
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2
	sigs.k8s.io/controller-runtime v0.23.3
)

replace (
	github.com/solonode/sno/approver => ../../approver
	github.com/solonode/sno/console => ../../console
	github.com/solonode/sno/etcdguard => ../../etcdguard
	github.com/solonode/sno/auth => ../../auth
	github.com/solonode/sno/ingress => ../../ingress
	github.com/solonode/sno/machineconfig => ../../machineconfig
	github.com/solonode/sno/patch => ../../patch
	github.com/solonode/sno/topology => ../../topology
)
