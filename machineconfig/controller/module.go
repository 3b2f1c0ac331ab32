package controller

import (
	"errors"
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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// controllerConfigName is the name of the ControllerConfig by which the stock controller works.
const controllerConfigName = "machine-config-controller"

var (
	controllerConfigObject = optional("ControllerConfig", controllerConfigName)
	poolObjects            = optional("MachineConfigPool", "")
	kubeletConfigObjects   = optional("KubeletConfig", "")
	// Every rendered machine config is as large as a node's whole configuration, so the one of ours is watched alone.
	machineConfigObject = optional("MachineConfig", machineconfig.ShutdownMachineConfigName)
	operatorObject      = manager.Object{
		GroupVersionKind: operatorv1.GroupVersion.WithKind("MachineConfiguration"), Name: machineconfig.OperatorName, Optional: true,
	}
	nodeObjects = manager.Object{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), MetadataOnly: true, Annotations: machineconfig.AnnotationPrefix,
	}
)

func optional(kind, name string) manager.Object {
	return manager.Object{GroupVersionKind: mcfgv1.GroupVersion.WithKind(kind), Name: name, Optional: true}
}

// DefaultDrainTimeout is how long one try of a drain takes at most unless somebody says otherwise. A pod may take this long to end in
// good order; one that takes longer is found ending by the next try.
const DefaultDrainTimeout = 90 * time.Second

// errDrainTimeout is returned for a timeout in which nothing can be drained.
var errDrainTimeout = errors.New("want a second or more")

// Module is the machineconfig module for a manager. The zero value is ready to use.
type Module struct {
	policy        string
	graceful      string
	shutdownBound time.Duration
	drainTimeout  time.Duration
}

var _ manager.Module = &Module{}

// Name implements manager.Module.
func (*Module) Name() string { return machineconfig.Name }

// BindFlags implements manager.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.policy, "drain-policy", string(machineconfig.DrainNever), fmt.Sprintf(
		"Which nodes are drained where there is one control-plane node: %s, or %s, for those whose pods certainly fit elsewhere.",
		machineconfig.DrainNever, machineconfig.DrainWorkers))
	flags.DurationVar(&m.drainTimeout, "drain-timeout", DefaultDrainTimeout, "How long one try to drain a node takes at most. There is always another one.")
	flags.StringVar(&m.graceful, "graceful-shutdown", string(machineconfig.GracefulAuto), fmt.Sprintf(
		"Whether kubelets of the control plane are told to stop pods gracefully: %s, %s, or %s for a cluster of one node.",
		machineconfig.GracefulOn, machineconfig.GracefulOff, machineconfig.GracefulAuto))
	flags.DurationVar(&m.shutdownBound, "shutdown-bound", machineconfig.DefaultShutdownBound, "How long a graceful shutdown takes at most.")
}

// Validate implements manager.Module.
func (m *Module) Validate() error {
	if m.drainTimeout != 0 && m.drainTimeout < time.Second {
		return fmt.Errorf("--drain-timeout=%s: %w", m.drainTimeout, errDrainTimeout)
	}
	if err := m.settings().Validate(); err != nil {
		return fmt.Errorf("--drain-policy, --graceful-shutdown, --shutdown-bound: %w", err)
	}
	return nil
}

// settings are the flags, as inputs of a decision.
func (m *Module) settings() machineconfig.Inputs {
	return machineconfig.Inputs{
		Policy: machineconfig.DrainPolicy(m.policy), Graceful: machineconfig.GracefulShutdown(m.graceful), ShutdownBound: m.shutdownBound,
	}
}

// Objects implements manager.Module. A cluster without a machine-config operator serves none of its kinds.
func (*Module) Objects() []manager.Object {
	return []manager.Object{
		manager.Infrastructure, nodeObjects, controllerConfigObject, poolObjects, kubeletConfigObjects, machineConfigObject, operatorObject,
	}
}

// Look implements manager.Module. Without the clients and the events of a controller it answers no node.
func (m *Module) Look(env manager.Environment) (manager.Look, error) {
	return m.patcher(nil, env).look, nil
}

// Setup implements manager.Module.
func (m *Module) Setup(mgr ctrl.Manager, env manager.Environment) error {
	kube, err := newKube(mgr.GetConfig())
	if err != nil {
		return err
	}
	counted, err := newTries(crmetrics.Registry)
	if err != nil {
		return err
	}
	p := m.patcher(kube, env)
	p.nodes.events, p.nodes.tries = mgr.GetEventRecorder("sno-"+machineconfig.Name), counted
	if err := mgr.Add(p.drains); err != nil {
		return fmt.Errorf("adding the drains: %w", err)
	}
	controller := &manager.Controller{
		Look: p.look, Wake: p.drains.wake,
		Reporter: env.Reporter(mgr, machineconfig.Name, machineconfig.ConditionPrefix, "machineconfiguration/"+machineconfig.OperatorName),
	}
	return controller.Watch(mgr, m, env)
}

// patcher is one that reads and does as the environment says.
func (m *Module) patcher(kube kubernetes.Interface, env manager.Environment) *patcher {
	p := m.newPatcher(kube, env.Applier(machineconfig.Name))
	p.reader, p.live, p.metadata, p.once = env.Reader, env.Live, env.Metadata(nodeObjects), env.Once
	return p
}

// newPatcher is a patcher that does as the flags say. It cannot read, nor tell what it does, yet.
func (m *Module) newPatcher(kube kubernetes.Interface, applier *apply.Applier) *patcher {
	timeout := m.drainTimeout
	if timeout == 0 {
		timeout = DefaultDrainTimeout
	}
	on := &nodes{kube: kube, timeout: timeout, force: applier.ForceConflicts, recorder: applier.Recorder}
	return &patcher{
		settings: m.settings(), nodes: on, drains: newDrains(on.drain, timeout), applier: applier,
		clock: clock.RealClock{}, notOurs: map[types.UID]bool{},
	}
}

// newKube is a client that reads many nodes and pods in the shorter encoding, and whose writes have a name of their own: kubectl's
// library names no field manager.
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
