package cli

import (
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/offline"
	"github.com/solonode/sno/patch/manager"
)

// source is where a verb reads from: a cluster, or a must-gather.
type source struct {
	client client.Client
	// gathered is set for a must-gather.
	gathered *offline.Client
	close    func() error
}

// bindMustGather declares the flag.
func bindMustGather(command *cobra.Command, at *string) {
	command.Flags().StringVar(at, "must-gather", "", "Read this folder or .tar.gz of oc adm must-gather, or of oc adm inspect, instead of a cluster.")
}

// open opens the must-gather, or the cluster where that is empty.
func (p *program) open(command *cobra.Command, mustGather string) (*source, error) {
	if mustGather == "" {
		made, err := p.connect()
		if err != nil {
			return nil, err
		}
		return &source{client: made, close: func() error { return nil }}, nil
	}
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "token", "etcd-endpoints"} {
		if f := command.Flags().Lookup(name); f != nil && f.Changed {
			return nil, fmt.Errorf("%w: --must-gather reads no cluster, so --%s makes no sense with it", errFlags, name)
		}
	}
	tree, end, err := offline.Open(mustGather)
	if err != nil {
		return nil, err
	}
	gathered := offline.New(tree, kinds()...)
	return &source{client: gathered, gathered: gathered, close: end}, nil
}

// errFlags is returned for flags that contradict each other.
var errFlags = errors.New("conflicting flags")

func (p *program) connect() (client.Client, error) {
	config, err := p.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-sno"
	config.QPS = -1 // a verb sends a few requests and ends
	config.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	made, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return made, nil
}

// finish says what a must-gather lacked, and closes it.
func (s *source) finish(p *program, err error) error {
	err = errors.Join(err, s.close())
	if s.gathered == nil || err != nil {
		return err
	}
	gaps := s.gathered.Gaps()
	if len(gaps) == 0 {
		return nil
	}
	fmt.Fprintln(p.ErrOut, "The must-gather is not whole, so this is only what can be told without:")
	for _, gap := range gaps {
		fmt.Fprintln(p.ErrOut, "  "+gap.String())
	}
	return exit{code: exitPartial}
}

// kinds are those that modules read of a must-gather.
func kinds() []offline.Kind {
	known := map[schema.GroupVersionKind]bool{
		corev1.SchemeGroupVersion.WithKind("Pod"):                            true,
		corev1.SchemeGroupVersion.WithKind("Node"):                           false,
		appsv1.SchemeGroupVersion.WithKind("Deployment"):                     true,
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):          true,
		configv1.GroupVersion.WithKind("Ingress"):                            false,
		operatorv1.GroupVersion.WithKind("IngressController"):                true,
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}: true,
	}
	for _, m := range allModules() {
		for _, o := range m.Objects() {
			if _, is := known[o.GroupVersionKind]; !is {
				known[o.GroupVersionKind] = o.Namespace != ""
			}
		}
	}
	var all []offline.Kind
	for gvk, namespaced := range known {
		all = append(all, offline.Kind{GroupVersionKind: gvk, Namespaced: namespaced})
	}
	return all
}

// explain adds to an error what to do about it.
func explain(err error) string {
	text := strings.TrimPrefix(err.Error(), "error: ")
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err):
		return text + "\nGive --kubeconfig or set KUBECONFIG; --must-gather needs no cluster."
	case apierrors.IsForbidden(err):
		return text + "\nAsk for this right, or use a user who has it; --as tries another one."
	case apierrors.IsUnauthorized(err):
		return text + "\nThe cluster does not accept these credentials; log in again."
	case errors.Is(err, manager.ErrNotServed), meta.IsNoMatchError(err):
		return text + "\nThis does not look like an OpenShift cluster, or its CustomResourceDefinitions are not installed yet. Check --context."
	case utilnet.IsConnectionRefused(err), utilnet.IsTimeout(err), isNoHost(err):
		return text + "\nNo cluster answers there. Check --kubeconfig, --context and --server; --must-gather needs no cluster."
	}
	return text
}

func isNoHost(err error) bool { return strings.Contains(err.Error(), "no such host") }
