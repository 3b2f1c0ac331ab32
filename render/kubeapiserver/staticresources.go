package kubeapiserver

import (
	"embed"
	"io/fs"
	"slices"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
)

//go:embed manifests
var manifests embed.FS

// Objects that one profile has and the other has not. In profile kubernetes kube-controller-manager renews client certificates of
// kubelets: who asks has one already. In profile openshift the approver of the machines does. The first certificate of a kubelet
// is approved by kube-controller-manager in neither: the credentials of the bootstrapper alone do not prove who asks (R-APP-3).
var (
	onlyOpenShift = []string{
		"clusterrole-check-endpoints.yaml",
		"clusterrole-check-endpoints-crd-reader.yaml",
		"clusterrole-check-endpoints-node-reader.yaml",
		"clusterrolebinding-check-endpoints-auth-delegator.yaml",
		"clusterrolebinding-check-endpoints-crd-reader.yaml",
		"clusterrolebinding-check-endpoints-node-reader.yaml",
		"clusterrolebinding-localhost-recovery-client.yaml",
		"configmap-trusted-ca-bundle.yaml",
		"rolebinding-check-endpoints.yaml",
		"rolebinding-check-endpoints-kube-system.yaml",
		"secret-localhost-recovery-client-token.yaml",
		"serviceaccount-localhost-recovery-client.yaml",
	}
	onlyKubernetes = []string{
		"clusterrolebinding-approve-renewal.yaml",
	}
)

func staticResources(profile inputs.Profile) loop.Loop {
	files, err := fs.Sub(manifests, "manifests")
	if err != nil {
		panic(err) // The folder is in the program.
	}
	return librarygo.StaticResources(component+": static resources", librarygo.KubeAPIServer, files, resourceFiles(files, profile)...)
}

func resourceFiles(files fs.FS, profile inputs.Profile) []string {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err) // The pattern is right.
	}
	without := onlyOpenShift
	if profile == inputs.OpenShift {
		without = onlyKubernetes
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(without, name) })
}
