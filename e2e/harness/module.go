package harness

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// Module is an operator module of the repository, by its name.
type Module string

// The modules. They are no enumeration: a selection of them is a map that need not have them all.
var (
	Ingress = Module("ingress")
	Console = Module("console")
	Auth    = Module("auth")
	// EtcdGuard has no host operator.
	EtcdGuard = Module("etcdguard")
	// MachineConfig has none either: it answers where no machine-config operator does.
	MachineConfig = Module("machineconfig")
	// Approver has none: it works beside a stock approver of which only the Deployment is there.
	Approver = Module("approver")
)

// SystemNamespace is where our controllers run.
const SystemNamespace = "sno-system"

// AllAccount is the service account of the process with all controllers, in SystemNamespace, AllUser what the API server calls it, and AllLease the Lease
// that it leads by.
const (
	AllAccount = "sno-controllers"
	AllUser    = "system:serviceaccount:" + SystemNamespace + ":" + AllAccount
	AllLease   = "kubectl-sno.sno.solonode.github.io"
)

// parts is what there is of a module.
type parts struct {
	controller, host programs.Program
	// condition says how the patch stands, on the object that is named by kind and key.
	condition string
	kind      schema.GroupVersionKind
	key       client.ObjectKey
	// prepare makes the cluster ready for the host and returns the arguments that it needs there; nil for none.
	prepare func(context.Context, *embedded.Cluster) ([]string, error)
	// install makes the cluster ready for the controller; nil where every cluster is.
	install func(context.Context, *embedded.Cluster) error
}

var modules = map[Module]parts{
	Ingress: {
		controller: programs.IngressController, host: programs.IngressHost, condition: "IngressTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("IngressController"),
		key:  client.ObjectKey{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController},
	},
	Console: {
		controller: programs.ConsoleController, host: programs.ConsoleHost, condition: "ConsoleTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("Console"), key: client.ObjectKey{Name: scenario.ClusterName},
	},
	Auth: {
		controller: programs.AuthController, host: programs.AuthHost, condition: "AuthTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("Authentication"), key: client.ObjectKey{Name: scenario.ClusterName},
		prepare: advertiseAPIServer,
	},
	EtcdGuard: {
		controller: programs.EtcdGuardController, condition: "EtcdGuardTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("Etcd"), key: client.ObjectKey{Name: scenario.ClusterName},
	},
	MachineConfig: {
		controller: programs.MachineConfigController, condition: "MachineConfigTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("MachineConfiguration"), key: client.ObjectKey{Name: scenario.ClusterName},
		install: installMachineConfiguration,
	},
	Approver: {
		controller: programs.ApproverController, condition: "ApproverTopologyPatchInForce",
		kind: configv1.GroupVersion.WithKind("ClusterOperator"), key: client.ObjectKey{Name: StockApprover},
		install: installStockApprover,
	},
}

// Account is the service account of the module's controller, in SystemNamespace.
func (m Module) Account() string { return "sno-" + m.Controller().Name }

// User is what the API server calls that account.
func (m Module) User() string { return "system:serviceaccount:" + SystemNamespace + ":" + m.Account() }

// HostUser is what the API server calls the module's host operator.
func (m Module) HostUser() string { return m.Host().Name }

// FieldOwner is the module's field owner.
func (m Module) FieldOwner() string { return patch.FieldOwner(string(m)) }

// ConditionType is the type of the condition that says how the module's patch stands.
func (m Module) ConditionType() string { return modules[m].condition }

// Controller is the module's controller.
func (m Module) Controller() programs.Program { return modules[m].controller }

// Host is the program that stands in for the stock operator of the module's operand.
func (m Module) Host() programs.Program { return modules[m].host }

// installMachineConfiguration brings the kinds of a machine-config operator that are of use without one, the resource on which the
// controller shows how it stands, and the pools.
func installMachineConfiguration(ctx context.Context, c *embedded.Cluster) error {
	err := c.InstallCRDs(ctx, []string{
		"operator/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigurations.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-SelfManagedHA.crd.yaml",
	}, nil)
	if err != nil {
		return err
	}
	// The typed object says more than it should.
	operator := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"managementState": string(operatorv1.Managed)}}}
	operator.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("MachineConfiguration"))
	operator.SetName(scenario.ClusterName)
	if err := c.Client().Create(ctx, operator); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the MachineConfiguration: %w", err)
	}
	return nil
}

// advertiseAPIServer has the Service kubernetes name the API server, as on any cluster, by an address that a slice of endpoints may hold.
// The host is told what is behind it. An API server without OpenShift's configuration serves no well-known endpoint of OAuth;
// /version can be read by anybody too.
func advertiseAPIServer(ctx context.Context, c *embedded.Cluster) ([]string, error) {
	at, err := url.Parse(c.URL())
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	const address, port = "192.0.2.1", 6443
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](port)}},
	}
	if err := c.Client().Create(ctx, slice); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("advertise the API server: %w", err)
	}
	return []string{"--connect-to=" + net.JoinHostPort(address, strconv.Itoa(port)) + "=" + at.Host, "--well-known-path=/version"}, nil
}

// AllModules lists every one, in the order in which people read of them.
func AllModules() []Module {
	return []Module{Ingress, EtcdGuard, MachineConfig, Console, Auth, Approver}
}

// Modules lists those that have a host operator.
func Modules() []Module { return []Module{Ingress, Console, Auth} }
