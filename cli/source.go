// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/mustgather"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch/controller"
)

var errFlags = errors.New("conflicting flags")

func (p *program) bindMustGather(command *cobra.Command) {
	command.Flags().StringVar(&p.mustGather, "must-gather", "",
		"Read this folder or .tar.gz of oc adm must-gather, or of oc adm inspect, instead of a cluster.")
}

// read calls do with the cluster, or with the must-gather and no server, and then reports what the must-gather lacks.
func (p *program) read(command *cobra.Command, do func(from rehearsal.Base, server client.Client) error) error {
	if p.mustGather == "" {
		cluster, err := p.connect()
		if err != nil {
			return err
		}
		return do(cluster, cluster)
	}
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "token", "etcd-endpoints"} {
		if f := command.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("%w: --must-gather reads no cluster; remove --%s", errFlags, name)
		}
	}
	files, end, err := mustgather.Open(p.mustGather)
	if err != nil {
		return err
	}
	kinds := meta.NewDefaultRESTMapper(nil) // a must-gather lacks the served kinds
	for _, m := range p.all {
		for _, o := range m.Objects() {
			kinds.Add(o.GroupVersionKind, meta.RESTScopeNamespace)
		}
	}
	gathered, err := mustgather.New(files, kinds)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", p.mustGather, err), end())
	}
	if err := errors.Join(do(gathered, nil), end()); err != nil || len(gathered.Gaps()) == 0 {
		return err
	}
	fmt.Fprintln(p.ErrOut, "The must-gather is incomplete, and so is this output. Missing or unreadable:")
	fmt.Fprintln(p.ErrOut, "  "+strings.Join(gathered.Gaps(), "\n  "))
	return exitPartial
}

func (p *program) config() (*rest.Config, error) {
	config, err := p.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = processName
	return config, nil
}

func (p *program) connect() (client.Client, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // a command sends a few requests and ends
	config.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
}

// explain adds what to do about an error.
func explain(err error) string {
	text := strings.TrimPrefix(err.Error(), "error: ")
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err):
		return text + "\nSet --kubeconfig or KUBECONFIG. With --must-gather no cluster is needed."
	case apierrors.IsForbidden(err):
		return text + "\nAsk for this permission, or use another user; --as impersonates one."
	case apierrors.IsUnauthorized(err):
		return text + "\nThe cluster does not accept these credentials; log in again."
	case errors.Is(err, controller.ErrNotServed), meta.IsNoMatchError(err):
		return text + "\nThis is not an OpenShift cluster, or its CustomResourceDefinitions are not installed yet. Check --context."
	case utilnet.IsConnectionRefused(err), utilnet.IsTimeout(err), strings.Contains(err.Error(), "no such host"):
		return text + "\nThe API server does not answer. Check --kubeconfig, --context and --server. With --must-gather no cluster is needed."
	}
	return text
}
