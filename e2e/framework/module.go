// SPDX-License-Identifier: Apache-2.0

package framework

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

// Module is the name of an operator module of the repository.
type Module string

// The modules.
const (
	Ingress   Module = "ingress"
	Console   Module = "console"
	Auth      Module = "auth"
	EtcdGuard Module = "etcdguard"
	// MachineConfig has a controller that processes requests where no machine-config operator does.
	MachineConfig Module = "machineconfig"
	Approver      Module = "approver"
)

// SystemNamespace is the namespace of the controllers.
const SystemNamespace = "sno-system"

// AllAccount is the service account of the process with all controllers in SystemNamespace, AllUser its user name, and
// AllLease its Lease.
const (
	AllAccount = "sno-controllers"
	AllUser    = "system:serviceaccount:" + SystemNamespace + ":" + AllAccount
	AllLease   = "kubectl-sno.sno.solonode.github.io"
)

type parts struct {
	controller, host programs.Program
	// condition is the type of its condition, on the object of kind and key.
	condition string
	kind      schema.GroupVersionKind
	key       client.ObjectKey
	// atRest are types of the host's conditions on the same object that are False when the host has nothing left to do.
	atRest []string
	// prepare, if not nil, prepares the cluster for the host and returns arguments for it.
	prepare func(context.Context, *embedded.Cluster) ([]string, error)
	// install, if not nil, prepares the cluster for the controller and for the host.
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
		controller: programs.EtcdGuardController, host: programs.EtcdHost, atRest: []string{"GuardControllerProgressing", "EtcdMembersProgressing"}, condition: "EtcdGuardTopologyPatchInForce",
		kind: operatorv1.GroupVersion.WithKind("Etcd"), key: client.ObjectKey{Name: scenario.ClusterName},
	},
	MachineConfig: {
		controller: programs.MachineConfigController, host: programs.MachineConfigHost, condition: "MachineConfigTopologyPatchInForce",
		atRest: []string{"DrainControllerProgressing"}, prepare: installMachineConfigs,
		kind: operatorv1.GroupVersion.WithKind("MachineConfiguration"), key: client.ObjectKey{Name: scenario.ClusterName},
		install: installMachineConfiguration,
	},
	Approver: {
		controller: programs.ApproverController, host: programs.ApproverHost, condition: "ApproverTopologyPatchInForce",
		kind: configv1.GroupVersion.WithKind("ClusterOperator"), key: client.ObjectKey{Name: StockApprover},
		install: installStockApprover, atRest: []string{string(configv1.OperatorProgressing)},
	},
}

// Account returns the service account of the module's controller, in SystemNamespace.
func (m Module) Account() string { return "sno-" + m.Controller().Name }

// User returns the user name of that account.
func (m Module) User() string { return "system:serviceaccount:" + SystemNamespace + ":" + m.Account() }

// HostUser returns the user name of the module's host operator.
func (m Module) HostUser() string { return m.Host().Name }

// FieldOwner returns the module's field owner.
func (m Module) FieldOwner() string { return patch.FieldOwner(string(m)) }

// ConditionType returns the type of the module's condition.
func (m Module) ConditionType() string { return modules[m].condition }

// Controller returns the module's controller.
func (m Module) Controller() programs.Program { return modules[m].controller }

// Host returns the operator that vendors the module, which with --stock is the stand-in of the stock operator.
func (m Module) Host() programs.Program { return modules[m].host }

// installMachineConfiguration installs the kinds of a machine-config operator that are used without one, and the object
// with the controller's conditions.
func installMachineConfiguration(ctx context.Context, c *embedded.Cluster) error {
	err := c.InstallCRDs(ctx, []string{
		"operator/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigurations-Default.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-Default.crd.yaml",
	}, nil)
	if err != nil {
		return err
	}
	// The typed object would set more fields.
	operator := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"managementState": string(operatorv1.Managed)}}}
	operator.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("MachineConfiguration"))
	operator.SetName(scenario.ClusterName)
	if err := c.Client().Create(ctx, operator); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the MachineConfiguration: %w", err)
	}
	return nil
}

// installMachineConfigs installs the kind that an operator of a command writes.
func installMachineConfigs(ctx context.Context, c *embedded.Cluster) ([]string, error) {
	return nil, c.InstallCRDs(ctx, []string{"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml"}, nil)
}

// advertiseAPIServer creates endpoints of the Service kubernetes with a valid address, and returns where the host finds
// them. An API server without OpenShift's configuration has no well-known endpoint of OAuth; /version is public as
// well.
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

// AllModules returns all modules in the order of the documents.
func AllModules() []Module {
	return []Module{Ingress, EtcdGuard, MachineConfig, Console, Auth, Approver}
}

// Modules returns the modules of operands, whose host operators run on every cluster.
func Modules() []Module { return []Module{Ingress, Console, Auth} }
