package kubecontrollermanager

import (
	"fmt"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

// Files inside of the container.
const (
	recyclerPod = podtemplate.ResourceDir + "/configmaps/recycler-config/recycler-pod.yaml"
	signerDir   = podtemplate.CertDir + "/secrets/csr-signer"
)

// defaults returns the configuration under what is observed (U-REN-15).
//
// A certificate that is signed for a kubelet may last as long as the CA, because nobody renews the CA. In profile kubernetes there is
// no network operator that gives nodes their ranges of pod addresses, so kube-controller-manager does.
func defaults(s *inputs.Settings) map[string]any {
	config := map[string]any{
		"apiVersion": "kubecontrolplane.config.openshift.io/v1",
		"kind":       "KubeControllerManagerConfig",
	}
	for flag, values := range map[string][]string{
		"allocate-node-cidrs":              {"false"},
		"cert-dir":                         {"/var/run/kubernetes"},
		"cluster-signing-cert-file":        {signerDir + "/tls.crt"},
		"cluster-signing-duration":         {s.Validity.String()},
		"cluster-signing-key-file":         {signerDir + "/tls.key"},
		"configure-cloud-routes":           {"false"},
		"controllers":                      {"*", "-bootstrapsigner", "-tokencleaner", "-ttl"},
		"enable-dynamic-provisioning":      {"true"},
		"flex-volume-plugin-dir":           {"/etc/kubernetes/kubelet-plugins/volume/exec"},
		"kube-api-burst":                   {"300"},
		"kube-api-qps":                     {"150"},
		"leader-elect":                     {"true"},
		"leader-elect-resource-lock":       {"leases"},
		"root-ca-file":                     {podtemplate.ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt"},
		"secure-port":                      {fmt.Sprint(port)},
		"service-account-private-key-file": {podtemplate.ResourceDir + "/secrets/service-account-private-key/" + privateKeyFile},
		"use-service-account-credentials":  {"true"},
	} {
		config = observe.Merge(config, observe.Argument(flag, values...))
	}
	if hasRecycler(s) {
		for _, kind := range []string{"hostpath", "nfs"} {
			config = observe.Merge(config, observe.Argument("pv-recycler-pod-template-filepath-"+kind, recyclerPod))
		}
	}
	if s.Profile == inputs.Kubernetes {
		config = observe.Merge(config, observe.Argument("allocate-node-cidrs", "true"))
	}
	return config
}

// recycles reports whether there is an image for the pod that empties released volumes. Without one kube-controller-manager has its own.
func hasRecycler(s *inputs.Settings) bool { return s.Images["tools"] != "" }

// policyDefaults returns the configuration of cluster-policy-controller under what is observed. Without a serving certificate it
// signs one itself.
func policyDefaults(serving bool) map[string]any {
	config := map[string]any{
		"apiVersion": "openshiftcontrolplane.config.openshift.io/v1",
		"kind":       "OpenShiftControllerManagerConfig",
		"servingInfo": map[string]any{
			"bindAddress": fmt.Sprintf("0.0.0.0:%d", policyPort),
			"bindNetwork": "tcp",
			"clientCA":    podtemplate.CertDir + "/configmaps/client-ca/ca-bundle.crt",
			"certFile":    "",
			"keyFile":     "",
		},
	}
	if serving {
		config = observe.Merge(config, observe.Nested(map[string]any{"certFile": servingFile + ".crt", "keyFile": servingFile + ".key"}, "servingInfo"))
	}
	return config
}

// servingFile is the path of the serving certificate and its key without their ends.
const servingFile = podtemplate.ResourceDir + "/secrets/serving-cert/tls"
