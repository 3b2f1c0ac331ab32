// SPDX-License-Identifier: Apache-2.0

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
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

// Objects to read. The stock approver has a ClusterOperator, and no resource in operator.openshift.io.
var (
	operatorObject   = object(configv1.GroupVersion, "ClusterOperator", "", "machine-approver")
	versionObject    = object(configv1.GroupVersion, "ClusterVersion", "", overrides.ClusterVersionName)
	deploymentObject = object(appsv1.SchemeGroupVersion, "Deployment", decision.Namespace, decision.DeploymentName)
	configObject     = object(corev1.SchemeGroupVersion, "ConfigMap", decision.Namespace, decision.ConfigMapName)
	machineObjects   = []controller.Object{
		machines("machine.openshift.io", "v1beta1"), machines("cluster.x-k8s.io", "v1beta1"), machines("cluster.x-k8s.io", "v1beta2"),
	}
)

func object(gv schema.GroupVersion, kind, namespace, name string) controller.Object {
	return controller.Object{GroupVersionKind: gv.WithKind(kind), Namespace: namespace, Name: name, Optional: gv == configv1.GroupVersion}
}

func machines(group, version string) controller.Object {
	gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: "Machine"}
	return controller.Object{GroupVersionKind: gvk, Optional: true, MetadataOnly: true}
}

var errFlags = errors.New("invalid flags")

// Module implements controller.Module. BindFlags sets the defaults.
type Module struct {
	mode                         string
	limits                       decision.AgeLimits
	requestsEvery, kubeletsEvery time.Duration
}

var _ controller.Module = &Module{}

// Name implements controller.Module.
func (*Module) Name() string { return approver.Name }

// BindFlags implements controller.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	limits := decision.DefaultAgeLimits
	flags.StringVar(&m.mode, "mode", string(decision.NodeClientOff),
		fmt.Sprintf("How to keep the stock approver from approving client certificates, one of %v.", decision.Modes()))
	flags.DurationVar(&m.limits.Pending, "max-pending", limits.Pending, "How long a request of a node may be pending before a failure is reported.")
	flags.DurationVar(&m.limits.Expiring, "expiry-warning", limits.Expiring,
		"How long before it expires a node's serving certificate must be renewed; at most a tenth of its lifetime.")
	flags.DurationVar(&m.requestsEvery, "requests-every", time.Minute, "Interval between reads of requests.")
	flags.DurationVar(&m.kubeletsEvery, "kubelets-every", time.Hour, "Interval between reads of the serving certificates of kubelets; 0 disables them.")
}

// Validate implements controller.Module.
func (m *Module) Validate() error {
	if err := (decision.Inputs{Mode: decision.Mode(m.mode)}).Validate(); err != nil {
		return fmt.Errorf("%w: --mode=%s: %w", errFlags, m.mode, err)
	}
	for name, value := range map[string]time.Duration{
		"max-pending": m.limits.Pending, "expiry-warning": m.limits.Expiring, "requests-every": m.requestsEvery,
	} {
		if value <= 0 {
			return fmt.Errorf("%w: --%s=%s is not positive", errFlags, name, value)
		}
	}
	if m.kubeletsEvery < 0 {
		return fmt.Errorf("%w: --kubelets-every=%s is negative", errFlags, m.kubeletsEvery)
	}
	return nil
}

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return append([]controller.Object{controller.Infrastructure, versionObject, operatorObject, deploymentObject, configObject}, machineObjects...)
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "deployment/" + decision.DeploymentName
}

// Reconciler implements controller.Module. It reconciles the patch only, without reports of requests and certificates.
func (m *Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	return newPatcher(env, decision.Mode(m.mode)).reconcile, nil
}

// Setup implements controller.Setup.
func (m *Module) Setup(mgr ctrl.Manager, env controller.Environment) error {
	registerMetrics()
	prefix, object := m.StatusNames()
	reporter, aging := env.Reporter(mgr, approver.Name, prefix, object), m.aging(env)
	aging.reporter = env.Reporter(mgr, approver.Name, agingPrefix, "certificates")
	aging.reporter.Metrics = nil // aging has its own metrics
	sink := &combinedSink{Sink: reporter.Sink}
	reporter.Sink, aging.reporter.Sink = sink, sink
	c := &controller.Controller{ReconcileFunc: aging.wrap(newPatcher(env, decision.Mode(m.mode)).reconcile), Reporter: reporter}
	return c.Watch(mgr, m, env)
}
