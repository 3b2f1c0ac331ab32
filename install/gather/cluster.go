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
	"text/tabwriter"

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
	"machineconfigs.json":        "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
	"namespaces.json":            "/api/v1/namespaces",
	"nodes.json":                 "/api/v1/nodes",
	"openshiftapiserver.json":    "/apis/operator.openshift.io/v1/openshiftapiservers",
	"pods.json":                  "/api/v1/pods",
	"rolebindings.json":          "/apis/rbac.authorization.k8s.io/v1/rolebindings",
	"roles.json":                 "/apis/rbac.authorization.k8s.io/v1/roles",
	"services.json":              "/api/v1/services",
}

const (
	resourceDir = "resources"
	// tables requests what kubectl prints, so that values of Secrets stay in the server.
	tables = "application/json;as=Table;g=meta.k8s.io;v=v1"
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
			if name == "nodes.json" && text != nil {
				b.nodeLists(ctx, text)
			}
			return nil
		})
	}
	work.Go(func() error {
		if text := b.request(ctx, client, "", "/api/v1/secrets", tables); text != nil {
			b.secretNames(ctx, text)
		}
		return nil
	})
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

// request adds the answer of the API server, and returns it. A kind that the server lacks is no error: profiles differ.
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
	if name != "" {
		b.add(ctx, path.Join(resourceDir, name), text)
	}
	return text
}

func (b *bundle) nodeLists(ctx context.Context, text []byte) {
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &list); err != nil {
		b.note("%s: %v", path.Join(resourceDir, "nodes.list"), err)
		return
	}
	var all, masters []string
	for _, n := range list.Items {
		all = append(all, n.Name)
		if _, ok := n.Labels["node-role.kubernetes.io/master"]; ok {
			masters = append(masters, n.Name)
		}
	}
	for name, names := range map[string][]string{"nodes.list": all, "masters.list": masters} {
		slices.Sort(names)
		b.add(ctx, path.Join(resourceDir, name), []byte(strings.Join(append(names, ""), "\n")))
	}
}

func (b *bundle) secretNames(ctx context.Context, text []byte) {
	name := path.Join(resourceDir, "secrets-names.txt")
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		b.note("%s: %v", name, err)
		return
	}
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	fmt.Fprint(columns, "NAMESPACE")
	for _, c := range table.ColumnDefinitions {
		fmt.Fprintf(columns, "\t%s", strings.ToUpper(c.Name))
	}
	fmt.Fprintln(columns)
	for _, row := range table.Rows {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			b.note("%s: %v", name, err)
			return
		}
		fmt.Fprint(columns, object.Namespace)
		for _, cell := range row.Cells {
			fmt.Fprintf(columns, "\t%v", cell)
		}
		fmt.Fprintln(columns)
	}
	if err := columns.Flush(); err != nil {
		b.note("%s: %v", name, err)
		return
	}
	b.add(ctx, name, out.Bytes())
}
