// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"fmt"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

const (
	recyclerPod = podtemplate.ResourceDir + "/configmaps/recycler-config/recycler-pod.yaml"
	signerDir   = podtemplate.CertDir + "/secrets/csr-signer"
)

// defaults returns the configuration below the observed one (U-REN-15). A kubelet's certificate may be valid as long as
// the CA. In profile kubernetes kube-controller-manager allocates the nodes' pod ranges, because there is no network
// operator.
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

// hasRecycler reports whether there is an image for recycler pods. kube-controller-manager has a default.
func hasRecycler(s *inputs.Settings) bool { return s.Images["tools"] != "" }

// policyDefaults returns the configuration of cluster-policy-controller, with its serving certificate if there is one.
func policyDefaults(serving bool) map[string]any {
	config := map[string]any{
		"apiVersion": "openshiftcontrolplane.config.openshift.io/v1",
		"kind":       "OpenShiftControllerManagerConfig",
		"servingInfo": map[string]any{
			"bindAddress": fmt.Sprintf("127.0.0.1:%d", policyPort),
			"bindNetwork": "tcp",
			"clientCA":    podtemplate.CertDir + "/configmaps/client-ca/ca-bundle.crt",
			"certFile":    "",
			"keyFile":     "",
		},
	}
	if serving {
		config = observe.Merge(config, observe.Nested(map[string]any{"certFile": observe.ServingFile + ".crt", "keyFile": observe.ServingFile + ".key"}, "servingInfo"))
	}
	return config
}
