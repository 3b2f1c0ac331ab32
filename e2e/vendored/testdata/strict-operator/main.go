// SPDX-License-Identifier: Apache-2.0

// Command strict-operator checks at its start what an operator of OpenShift checks, ends with an error if something is
// missing, and else writes what the operator writes first. Its first argument is the name in --operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

var apply = metav1.ApplyOptions{FieldManager: "strict-operator", Force: true}

// operator is what one of them needs.
type operator struct {
	verb string
	// flags are all that are known, required ones among them.
	flags, required, env []string
	// version and namespace are flags, or variables after $, listen is one with its default.
	version, namespace, kubeconfig string
	listen                         [2]string
	// gates panic in library-go if the FeatureGate does not list them.
	gates   []string
	objects []object
}

// object has a value at the path.
type object struct {
	resource, namespace, name string
	path                      []string
}

func library(env, gates []string, objects ...object) operator {
	return operator{
		verb: "operator", flags: []string{"config", "kubeconfig", "namespace", "listen", "terminate-on-files", "v"}, required: []string{"namespace"}, env: env,
		version: "$OPERATOR_IMAGE_VERSION", namespace: "namespace", kubeconfig: "kubeconfig", listen: [2]string{"listen", ":8443"}, gates: gates, objects: objects,
	}
}

func admitted(namespace, name string) object {
	return object{"route.openshift.io/v1/routes", namespace, name, []string{"status", "ingress"}}
}

func config(kind string, path ...string) object {
	return object{"config.openshift.io/v1/" + kind, "", "cluster", path}
}

var operators = map[string]operator{
	"ingress": {
		verb: "start", flags: []string{"namespace", "image", "canary-image", "release-version", "shutdown-file", "metrics-listen-addr"}, required: []string{"namespace", "image"},
		version: "release-version", namespace: "namespace", listen: [2]string{"metrics-listen-addr", "127.0.0.1:60000"},
		gates:   []string{"AzureWorkloadIdentity", "GatewayAPIWithoutOLM", "IngressControllerDynamicConfigurationManager"},
		objects: []object{config("dnses", "spec", "baseDomain"), config("infrastructures", "status"), config("ingresses", "spec", "domain")},
	},
	"console": library([]string{"IMAGE", "OPERATOR_IMAGE_VERSION"}, []string{"ExternalOIDC"},
		admitted("openshift-console", "console"), admitted("openshift-console", "downloads"), config("oauths")),
	"auth": library([]string{"IMAGE_OAUTH_SERVER", "IMAGE_OAUTH_APISERVER", "OPERATOR_IMAGE_VERSION", "OPERAND_OAUTH_SERVER_IMAGE_VERSION"}, []string{"ExternalOIDC"},
		admitted("openshift-authentication", "oauth-openshift"), config("authentications"), config("apiservers")),
	"etcd": library([]string{"IMAGE", "OPERATOR_IMAGE", "OPERATOR_IMAGE_VERSION", "OPERAND_IMAGE_VERSION"}, nil,
		config("networks", "status", "serviceNetwork"), object{"/v1/configmaps", "kube-system", "cluster-config-v1", []string{"data", "install-config"}}),
	"machineconfig": {
		verb: "start", flags: []string{"kubeconfig", "resourcelock-namespace", "templates", "metrics-listen-address", "payload-version", "v"}, required: []string{"templates"},
		version: "payload-version", namespace: "resourcelock-namespace", kubeconfig: "kubeconfig", listen: [2]string{"metrics-listen-address", "127.0.0.1:8797"},
		objects: []object{
			{"machineconfiguration.openshift.io/v1/controllerconfigs", "", "machine-config-controller", []string{"status", "conditions"}},
			{"machineconfiguration.openshift.io/v1/machineconfigpools", "", "master", nil}, config("apiservers"),
		},
	},
	"approver": {
		flags: []string{
			"config", "v", "logtostderr", "leader-elect", "leader-elect-resource-namespace", "api-group-version", "management-cluster-kubeconfig", "workload-cluster-kubeconfig",
		},
		required:  []string{"management-cluster-kubeconfig", "workload-cluster-kubeconfig", "leader-elect-resource-namespace"},
		namespace: "leader-elect-resource-namespace", kubeconfig: "workload-cluster-kubeconfig", listen: [2]string{"$METRICS_PORT", "9191"},
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, args []string) error {
	o := operators[name]
	if o.verb != "" {
		if len(args) == 0 || args[0] != o.verb {
			return fmt.Errorf("want the command %s", o.verb)
		}
		args = args[1:]
	}
	value, err := o.parse(args)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", value(o.listen[0], o.listen[1]))
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	kubeconfig := os.Getenv("KUBECONFIG")
	if o.kubeconfig != "" {
		kubeconfig = value(o.kubeconfig, "")
	}
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		return err
	}
	if err := o.check(ctx, client, value(o.version, "")); err != nil {
		return err
	}
	if err := act(ctx, client, name, value(o.namespace, "")); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// parse returns the value of a flag, or of a variable if the name begins with $.
func (o operator) parse(args []string) (func(name, otherwise string) string, error) {
	given := map[string]string{}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range o.flags {
		keep := func(text string) error { given[name] = text; return nil }
		if strings.HasPrefix(name, "leader-elect") && !strings.Contains(name, "namespace") || name == "logtostderr" {
			flags.BoolFunc(name, "", keep)
		} else {
			flags.Func(name, "", keep)
		}
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	for _, name := range o.required {
		if given[name] == "" {
			return nil, fmt.Errorf("required flag --%s is not set", name)
		}
	}
	for _, name := range o.env {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("the environment has no %s", name)
		}
	}
	if slices.Contains(o.flags, "shutdown-file") {
		if file, set := given["shutdown-file"]; !set || file != "" {
			if _, err := os.ReadFile(file); err != nil {
				return nil, fmt.Errorf("watch the shutdown file: %w", err)
			}
		}
	}
	if folder, set := given["templates"]; set {
		if entries, err := os.ReadDir(folder); err != nil || len(entries) == 0 {
			return nil, errors.Join(errors.New("no templates"), err)
		}
	}
	return func(name, otherwise string) string {
		text, set := given[name]
		if variable, is := strings.CutPrefix(name, "$"); is {
			text, set = os.LookupEnv(variable)
		}
		if !set {
			text = otherwise
		}
		if name == "$METRICS_PORT" {
			return "127.0.0.1:" + text
		}
		return text
	}, nil
}

func (o operator) check(ctx context.Context, client dynamic.Interface, version string) error {
	if o.version != "" {
		gates, err := read(ctx, client, config("featuregates"))
		if err != nil {
			return err
		}
		known := knownGates(gates, version)
		if known == nil {
			return fmt.Errorf("missing desired version %q in featuregates.config.openshift.io/cluster", version)
		}
		for _, gate := range o.gates {
			if !slices.Contains(known, gate) {
				return fmt.Errorf("feature %q is not registered", gate)
			}
		}
	}
	for _, need := range o.objects {
		live, err := read(ctx, client, need)
		if err != nil {
			return err
		}
		if _, has, err := unstructured.NestedFieldNoCopy(live.Object, need.path...); err != nil || !has {
			return errors.Join(err, fmt.Errorf("%s %s has no %s", need.resource, need.name, strings.Join(need.path, ".")))
		}
	}
	return nil
}

func knownGates(gates *unstructured.Unstructured, version string) []string {
	all, _, _ := unstructured.NestedSlice(gates.Object, "status", "featureGates")
	for _, each := range all {
		of, _ := each.(map[string]any)
		if of["version"] != version {
			continue
		}
		known := []string{}
		for _, list := range []string{"enabled", "disabled"} {
			gates, _, _ := unstructured.NestedSlice(of, list)
			for _, gate := range gates {
				name, _, _ := unstructured.NestedString(gate.(map[string]any), "name")
				known = append(known, name)
			}
		}
		return known
	}
	return nil
}

func resource(client dynamic.Interface, path, namespace string) dynamic.ResourceInterface {
	parts := strings.Split(path, "/")
	all := client.Resource(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]})
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

func read(ctx context.Context, client dynamic.Interface, o object) (*unstructured.Unstructured, error) {
	return resource(client, o.resource, o.namespace).Get(ctx, o.name, metav1.GetOptions{})
}

// act writes the ClusterOperator, as the ingress operator does, which has no leader election, or takes the Lease.
func act(ctx context.Context, client dynamic.Interface, name, namespace string) error {
	if name == "ingress" {
		content := map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}
		_, err := resource(client, "config.openshift.io/v1/clusteroperators", "").Apply(ctx, name, &unstructured.Unstructured{Object: content}, apply)
		if err != nil {
			return err
		}
		content["status"] = map[string]any{"extension": nil}
		_, err = resource(client, "config.openshift.io/v1/clusteroperators", "").ApplyStatus(ctx, name, &unstructured.Unstructured{Object: content}, apply)
		return err
	}
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "strict-" + name, "namespace": namespace},
		"spec": map[string]any{"holderIdentity": name},
	}}
	_, err := resource(client, "coordination.k8s.io/v1/leases", namespace).Apply(ctx, lease.GetName(), lease, apply)
	return err
}
