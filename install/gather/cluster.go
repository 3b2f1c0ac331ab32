// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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

// resources maps files of the bundle to paths of the API server.
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
}

// named are kinds with secrets. Only the names of their objects are gathered; the rest stays in the server.
var named = map[string]string{
	secretNames:          "/api/v1/secrets",
	"machineconfigs.txt": "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
}

const (
	resourceDir = "resources"
	secretNames = "secrets-names.txt"
	metadata    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

var errNoKubeconfig = errors.New("the machine has no kubeconfig of an administrator")

func (b *bundle) resources(ctx context.Context, work *errgroup.Group) {
	client, err := b.client()
	if err != nil {
		b.note("%s: omitted: %v", resourceDir, err)
		return
	}
	for name, from := range resources {
		work.Go(func() error {
			text := b.request(ctx, client, name, from, "application/json")
			if text == nil {
				return nil
			}
			// Each field is on a line of its own, so that a secret costs only its line.
			var lines bytes.Buffer
			if json.Indent(&lines, text, "", " ") == nil {
				b.add(ctx, path.Join(resourceDir, name), lines.Bytes())
			}
			if name == "nodes.json" {
				b.nameList(ctx, "nodes.list", "", text)
				b.nameList(ctx, "masters.list", "node-role.kubernetes.io/master", text)
			}
			return nil
		})
	}
	for name, from := range named {
		work.Go(func() error {
			if text := b.request(ctx, client, name, from, metadata); text != nil {
				b.nameList(ctx, name, "", text)
			}
			return nil
		})
	}
}

func (b *bundle) client() (*rest.RESTClient, error) {
	for _, name := range kubeconfigs {
		text, err := os.ReadFile(b.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the file
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.GroupVersion, config.NegotiatedSerializer, config.QPS = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion(), -1
		return rest.UnversionedRESTClientFor(config) //nolint:wrapcheck // the caller names what is left out
	}
	return nil, fmt.Errorf("%w: %s", errNoKubeconfig, strings.Join(kubeconfigs, " and "))
}

// request returns the answer of the API server. A kind that the server lacks is no error: profiles differ.
func (b *bundle) request(ctx context.Context, client *rest.RESTClient, name, from, accept string) []byte {
	limited, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	text, err := client.Get().AbsPath(from).SetHeader("Accept", accept).Do(limited).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		b.note("%s: GET %s: %v", path.Join(resourceDir, name), from, err)
		return nil
	}
	return text
}

// nameList adds the names of the objects in a list, one a line, of those with a label if it is not empty.
func (b *bundle) nameList(ctx context.Context, name, label string, text []byte) {
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &list); err != nil {
		b.note("%s: %v", path.Join(resourceDir, name), err)
		return
	}
	var names []string
	for _, o := range list.Items {
		if _, ok := o.Labels[label]; ok || label == "" {
			names = append(names, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")+"\n")
		}
	}
	slices.Sort(names)
	b.add(ctx, path.Join(resourceDir, name), []byte(strings.Join(names, "")))
}
