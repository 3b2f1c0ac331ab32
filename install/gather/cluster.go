// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/install/node"
)

// kubeconfigs are the administrator's kubeconfigs on this machine, during the installation and after it.
var kubeconfigs = []string{
	node.BootstrapKubeconfig,
	node.ResourceDir + "/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig",
}

// resources maps files of the bundle to paths of the API server. Those of kinds with secrets have the objects' names
// only; the rest stays in the server.
var resources = map[string]string{
	"apiservices.json":           "/apis/apiregistration.k8s.io/v1/apiservices",
	"clusteroperators.json":      "/apis/config.openshift.io/v1/clusteroperators",
	"clusterversion.json":        "/apis/config.openshift.io/v1/clusterversions",
	"configmaps.json":            "/api/v1/configmaps",
	"csr.json":                   "/apis/certificates.k8s.io/v1/certificatesigningrequests",
	"endpoints.json":             "/api/v1/endpoints",
	"etcd.json":                  "/apis/operator.openshift.io/v1/etcds",
	"events.json":                "/api/v1/events",
	"kubeapiserver.json":         "/apis/operator.openshift.io/v1/kubeapiservers",
	"kubecontrollermanager.json": "/apis/operator.openshift.io/v1/kubecontrollermanagers",
	"kubescheduler.json":         "/apis/operator.openshift.io/v1/kubeschedulers",
	"machineconfigpools.json":    "/apis/machineconfiguration.openshift.io/v1/machineconfigpools",
	"namespaces.json":            "/api/v1/namespaces",
	"nodes.json":                 "/api/v1/nodes",
	"openshiftapiserver.json":    "/apis/operator.openshift.io/v1/openshiftapiservers",
	"pods.json":                  "/api/v1/pods",
	"rolebindings.json":          "/apis/rbac.authorization.k8s.io/v1/rolebindings",
	"roles.json":                 "/apis/rbac.authorization.k8s.io/v1/roles",
	"services.json":              "/api/v1/services",
	secretNames:                  "/api/v1/secrets",
	"machineconfigs.txt":         "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
}

const (
	resourceDir = "resources"
	secretNames = "secrets-names.txt"
	metadata    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func (b *bundle) resources(ctx context.Context, work *errgroup.Group) {
	client, err := b.client()
	if err != nil {
		b.note(resourceDir, "omitted: %v", err)
		return
	}
	for name, from := range resources {
		work.Go(func() error {
			b.resource(ctx, client, path.Join(resourceDir, name), from)
			return nil
		})
	}
}

func (b *bundle) client() (*rest.RESTClient, error) {
	var rules clientcmd.ClientConfigLoadingRules
	for _, name := range kubeconfigs {
		rules.Precedence = append(rules.Precedence, filepath.Join(b.Root, name))
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of an administrator: %w", err)
	}
	config.GroupVersion, config.NegotiatedSerializer, config.QPS = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion(), -1
	return rest.UnversionedRESTClientFor(config) //nolint:wrapcheck // the caller names what is left out
}

// resource adds a list of objects. A kind that the server lacks is no error: profiles differ.
func (b *bundle) resource(ctx context.Context, client *rest.RESTClient, name, from string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, toText := client.Get().AbsPath(from), indented
	if strings.HasSuffix(name, ".txt") {
		request, toText = request.SetHeader("Accept", metadata), names
	}
	text, err := request.Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		text, err = toText(text)
	}
	if err != nil {
		b.note(name, "GET %s: %v", from, err)
		return
	}
	b.add(name, text)
}

// indented has each field on a line of its own, so that a secret costs only its line.
func indented(list []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, list, "", " ")
	return out.Bytes(), err //nolint:wrapcheck // the caller names the list
}

// names returns the names of objects, one a line.
func names(list []byte) ([]byte, error) {
	var objects metav1.PartialObjectMetadataList
	err := json.Unmarshal(list, &objects)
	var lines []string
	for _, o := range objects.Items {
		lines = append(lines, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "")), err //nolint:wrapcheck // the caller names the list
}
