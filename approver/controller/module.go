package controller

import (
	"errors"
	"flag"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/controller/kubelet"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// operatorName is the ClusterOperator of the stock approver. It has no resource of its own in operator.openshift.io.
const operatorName = "machine-approver"

var (
	operatorObject   = manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterOperator"), Name: operatorName, Optional: true}
	versionObject    = manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: approver.ClusterVersionName, Optional: true}
	deploymentObject = manager.Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: approver.Namespace, Name: approver.DeploymentName}
	configObject     = manager.Object{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: approver.Namespace, Name: approver.ConfigMapName}
)

// ErrFlags is returned for flags that make no sense.
var ErrFlags = errors.New("invalid flags")

// Module is the approver module for a manager. NewModule makes one.
type Module struct {
	mode            string
	limits          approver.AgeLimits
	every, kubelets time.Duration
}

var _ manager.Module = &Module{}

// NewModule is the module with its defaults.
func NewModule() *Module {
	return &Module{mode: string(approver.NodeClientOff), limits: approver.DefaultAgeLimits, every: time.Minute, kubelets: time.Hour}
}

// Name implements manager.Module.
func (*Module) Name() string { return approver.Name }

// BindFlags implements manager.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.mode, "mode", m.mode, fmt.Sprintf("How the stock approver is kept from approving client certificates: %v.", approver.Modes()))
	flags.DurationVar(&m.limits.Pending, "max-pending", m.limits.Pending, "How long a request of a node may wait before that is told.")
	flags.DurationVar(&m.limits.Expiring, "expiry-warning", m.limits.Expiring,
		"How long before its end a node's serving certificate should have been renewed; never longer than a tenth of its life.")
	flags.DurationVar(&m.every, "requests-every", m.every, "How often requests are read.")
	flags.DurationVar(&m.kubelets, "kubelets-every", m.kubelets, "How often kubelets are called for the certificate that they serve with; 0 for never.")
}

// Validate implements manager.Module.
func (m *Module) Validate() error {
	if err := (approver.PatchInputs{Mode: approver.Mode(m.mode)}).Validate(); err != nil {
		return fmt.Errorf("%w: --mode=%s: %w", ErrFlags, m.mode, err)
	}
	for name, value := range map[string]time.Duration{"max-pending": m.limits.Pending, "expiry-warning": m.limits.Expiring, "requests-every": m.every} {
		if value <= 0 {
			return fmt.Errorf("%w: --%s=%s is not positive", ErrFlags, name, value)
		}
	}
	if m.kubelets < 0 {
		return fmt.Errorf("%w: --kubelets-every=%s is negative", ErrFlags, m.kubelets)
	}
	return nil
}

// Objects implements manager.Module. A cluster without a cluster-version-operator serves neither of its kinds.
func (*Module) Objects() []manager.Object {
	return []manager.Object{manager.Infrastructure, versionObject, operatorObject, deploymentObject, configObject}
}

// Look implements manager.Module. It looks at the stock approver only, and not at what waits for it or for the outside tool.
func (m *Module) Look(env manager.Environment) (manager.Look, error) { return m.patcher(env).look, nil }

func (m *Module) patcher(env manager.Environment) *patcher {
	deployment := env.Applier(approver.Name, apply.Overridable{Field: approver.FieldReplicas, Manager: approver.ClusterVersionOperator})
	deployment.ForceConflicts = false // the decision says what is taken from whom
	version := env.Applier(approver.Name)
	version.ForceConflicts = false
	return &patcher{
		live: env.Live, mapper: env.Client.RESTMapper(), mode: approver.Mode(m.mode), every: m.every,
		now: time.Now, unserved: map[schema.GroupKind]time.Time{},
		writer: writer{client: env.Client, deployment: deployment, version: version, recorder: env.Metrics, dryRun: env.Options.DryRun},
	}
}

// Setup implements manager.Module.
func (m *Module) Setup(mgr ctrl.Manager, env manager.Environment) error {
	reporter := env.Reporter(mgr, approver.Name, approver.ConditionPrefix, "deployment/"+approver.DeploymentName)
	watching := &aging{
		live: env.Live, call: (&kubelet.Dialer{}).Present, limits: m.limits, requestsEvery: m.every, kubeletsEvery: m.kubelets,
		now: time.Now, wake: make(chan struct{}, 1), beginRequests: make(chan struct{}, 1), beginKubelets: make(chan struct{}, 1),
	}
	if err := watching.setUp(mgr, env, reporter); err != nil {
		return err
	}
	machines, err := newMachineWatch(mgr.GetConfig(), mgr.GetHTTPClient(), watching.wake)
	if err != nil {
		return err
	}
	if err := mgr.Add(machines); err != nil {
		return fmt.Errorf("adding the watch of Machines: %w", err)
	}
	p := m.patcher(env)
	p.aging, p.cache, p.watched = watching, env.Reader, machines
	controller := &manager.Controller{Look: p.look, Reporter: reporter, Wake: watching.wake}
	return controller.Watch(mgr, m, env)
}
