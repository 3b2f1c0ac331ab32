// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"flag"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch/controller"
)

var (
	controllerConfigObject = optional("ControllerConfig", "machine-config-controller")
	poolObjects            = optional("MachineConfigPool", "")
	kubeletConfigObjects   = optional("KubeletConfig", "")
	ownKubeletConfigObject = optional("KubeletConfig", machineconfig.ShutdownName)
	// Rendered machine configs are large, so only one MachineConfig is watched.
	machineConfigObject = optional("MachineConfig", machineconfig.ShutdownMachineConfigName)
	operatorObject      = controller.Object{
		GroupVersionKind: operatorv1.GroupVersion.WithKind("MachineConfiguration"), Name: machineconfig.OperatorName, Optional: true,
	}
	nodeObjects = controller.Object{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), MetadataOnly: true, Annotations: machineconfig.AnnotationPrefix,
	}
)

func optional(kind, name string) controller.Object {
	return controller.Object{GroupVersionKind: mcfgv1.GroupVersion.WithKind(kind), Name: name, Optional: true}
}

// DefaultDrainTimeout is the time limit of an attempt to drain a node.
const DefaultDrainTimeout = 90 * time.Second

// Module is the machineconfig module for a process. The zero value is ready to use.
type Module struct {
	settings     decision.Inputs
	drainTimeout time.Duration
}

var _ controller.Module = &Module{}

// Name implements controller.Module.
func (*Module) Name() string { return machineconfig.Name }

// BindFlags implements controller.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar((*string)(&m.settings.Policy), "drain-policy", string(machineconfig.DrainNever), fmt.Sprintf(
		"Nodes to drain where the control plane is SingleReplica: %s, or %s, those whose pods certainly fit on other nodes.",
		machineconfig.DrainNever, machineconfig.DrainWorkers))
	flags.DurationVar(&m.drainTimeout, "drain-timeout", DefaultDrainTimeout,
		"Time limit of one attempt to drain a node. A failed attempt is retried.")
	flags.StringVar((*string)(&m.settings.Graceful), "graceful-shutdown", string(decision.GracefulAuto), fmt.Sprintf(
		"Whether to configure graceful shutdown on control-plane nodes: %s, %s, or %s for a cluster of one node.",
		decision.GracefulOn, decision.GracefulOff, decision.GracefulAuto))
	flags.DurationVar(&m.settings.ShutdownBound, "shutdown-bound", machineconfig.DefaultShutdownBound, "Time limit of a graceful shutdown.")
}

// Validate implements controller.Module.
func (m *Module) Validate() error {
	if m.drainTimeout != 0 && m.drainTimeout < time.Second {
		return fmt.Errorf("%w: --drain-timeout=%s; want a second or more", machineconfig.ErrInputs, m.drainTimeout)
	}
	if err := m.settings.Validate(); err != nil {
		return fmt.Errorf("--drain-policy, --graceful-shutdown, --shutdown-bound: %w", err)
	}
	return nil
}

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return []controller.Object{
		controller.Infrastructure, nodeObjects, controllerConfigObject, poolObjects, kubeletConfigObjects, machineConfigObject, operatorObject,
	}
}

// Reconciler implements controller.Module. It does not handle drain requests.
func (m *Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	return m.patcher(env).reconcile, nil
}

// Draining is what handling drain requests needs in addition to an Environment.
type Draining struct {
	Config *rest.Config // for nodes and pods
	Events events.EventRecorder
	Clock  clock.PassiveClock // nil for the real one
}

// DrainingReconciler is Reconciler, and handles drain requests, whose state is in memory.
func (m *Module) DrainingReconciler(env controller.Environment, draining Draining) (controller.ReconcileFunc, error) {
	kube, err := newKube(draining.Config)
	if err != nil {
		return nil, err
	}
	p := m.patcher(env)
	p.kube, p.events, p.clock = kube, draining.Events, cmp.Or(draining.Clock, p.clock)
	return p.reconcile, nil
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "machineconfiguration/" + machineconfig.OperatorName
}

// Setup implements controller.Setup.
func (m *Module) Setup(mgr ctrl.Manager, env controller.Environment) error {
	reconcile, err := m.DrainingReconciler(env, Draining{Config: mgr.GetConfig(), Events: mgr.GetEventRecorder("sno-" + machineconfig.Name)})
	if err != nil {
		return err
	}
	prefix, object := m.StatusNames()
	c := &controller.Controller{ReconcileFunc: reconcile, Reporter: env.Reporter(mgr, machineconfig.Name, prefix, object)}
	return c.Watch(mgr, m, env)
}

func (m *Module) patcher(env controller.Environment) *patcher {
	p := &patcher{
		Environment: env, applier: env.Applier(machineconfig.Name), writer: env.Client, settings: m.settings,
		drainTimeout: cmp.Or(m.drainTimeout, DefaultDrainTimeout), clock: clock.RealClock{},
		drains: map[types.UID]*drain{}, notOwned: map[types.UID]bool{},
	}
	p.applier.ForceConflicts = false // --force-conflicts is for acknowledgements only
	if env.Options.DryRun {
		p.writer = client.NewDryRunClient(env.Client)
	}
	return p
}

// newKube returns a client. kubectl's library sets no field manager, so that of its cordons is the user agent.
func newKube(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = cordonManager
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return kube, nil
}
