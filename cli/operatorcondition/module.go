// SPDX-License-Identifier: Apache-2.0

// Package operatorcondition reports to the Operator Lifecycle Manager (OLM) whether it may replace this version of the
// operator: condition Upgradeable of the OperatorCondition that OLM makes for each installed version.
//
// OLM grants get, update and patch of that one object to the operator's service account, so it is neither watched nor
// created.
package operatorcondition

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

// NameVariable is the environment variable with the name of the OperatorCondition, which OLM sets in the Deployment.
const NameVariable = "OPERATOR_CONDITION_NAME"

// Name is the name of the controller, and of its field owner.
const Name = "operatorcondition"

// recheck is the interval of reads of the OperatorCondition, which OLM grants no right to watch.
const recheck = 5 * time.Minute

// namespaceFile holds the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ErrNamespace is returned if the namespace of the OperatorCondition is not known.
var ErrNamespace = errors.New("the namespace of the OperatorCondition is not known")

var (
	versionObject = controller.Object{
		GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: overrides.ClusterVersionName, Optional: true,
	}
	kind = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}
)

// Module is the controller of an OperatorCondition.
type Module struct {
	Object controller.Object
}

// FromEnvironment returns the controller, or nil if OLM has not installed this process. An empty namespace is that of
// the pod.
func FromEnvironment(namespace string) (*Module, error) {
	name := os.Getenv(NameVariable)
	if name == "" {
		return nil, nil
	}
	if namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is set, give --leader-elect-resource-namespace: %w", ErrNamespace, NameVariable, err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	return &Module{controller.Object{GroupVersionKind: kind, Namespace: namespace, Name: name}}, nil
}

// Name implements controller.Module.
func (*Module) Name() string { return Name }

// BindFlags implements controller.Module.
func (*Module) BindFlags(*flag.FlagSet) {}

// Validate implements controller.Module.
func (*Module) Validate() error { return nil }

// Objects implements controller.Module. The OperatorCondition is not among them: it cannot be watched.
func (*Module) Objects() []controller.Object { return []controller.Object{versionObject} }

// StatusNames implements controller.Module. This controller patches no operator and has no such condition.
func (*Module) StatusNames() (prefix, object string) { return "", "" }

// Reconciler implements controller.Module. Setup makes the controller.
func (*Module) Reconciler(controller.Environment) (controller.ReconcileFunc, error) { return nil, nil }

// Setup implements controller.Setup.
func (m *Module) Setup(mgr ctrl.Manager, env controller.Environment) error {
	r := &reporter{object: m.Object, version: env.Reader, live: env.Live, client: env.Client, dryRun: env.Options.DryRun}
	request := reconcile.Request{NamespacedName: m.Object.Key()}
	b := builder.ControllerManagedBy(mgr).Named(Name).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(request)
			return nil
		}))
	if from := env.Caches[versionObject]; from != nil {
		b = b.WatchesRawSource(source.Kind(from, versionObject.Unstructured(), handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *unstructured.Unstructured) []reconcile.Request {
				return []reconcile.Request{request}
			})))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}

type reporter struct {
	object  controller.Object
	version client.Reader // the cache of the ClusterVersion
	live    client.Reader
	client  client.Client
	dryRun  bool

	absent bool // it was logged that the object does not exist
}

type spec struct {
	Spec struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"spec"`
}

// Reconcile implements reconcile.Reconciler.
func (r *reporter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	_, version, err := controller.Read[configv1.ClusterVersion](ctx, r.version, versionObject)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := Decide(version)
	if err != nil {
		return reconcile.Result{}, err
	}
	live, has, err := controller.Read[spec](ctx, r.live, r.object)
	if live == nil && (err == nil || controller.IsNotServed(err)) {
		if !r.absent {
			logr.FromContextOrDiscard(ctx).Info("OperatorCondition does not exist, reading it again later",
				"operatorCondition", r.object.Key().String(), "every", recheck.String())
		}
		r.absent = true
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.absent = false
	return reconcile.Result{RequeueAfter: recheck}, r.report(ctx, live, has.Spec.Conditions, wanted)
}

// report applies the condition unless the object has it. The API server has the list as one value, so the intent
// includes the conditions of other types, and the resourceVersion that they were read with.
func (r *reporter) report(ctx context.Context, live *unstructured.Unstructured, has []metav1.Condition, wanted metav1.Condition) error {
	wanted.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
	at := slices.IndexFunc(has, func(c metav1.Condition) bool { return c.Type == wanted.Type })
	if at >= 0 {
		if has[at].Status == wanted.Status {
			wanted.LastTransitionTime = has[at].LastTransitionTime
		}
		if has[at] == wanted {
			return nil
		}
		has[at] = wanted
	} else {
		has = append(has, wanted)
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("status", string(wanted.Status), "reason", wanted.Reason)
	if r.dryRun {
		log.Info("Would report whether OLM may replace this version")
		return nil
	}
	intended := spec{}
	intended.Spec.Conditions = has
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&intended)
	if err != nil {
		return fmt.Errorf("encoding the conditions of OperatorCondition %s: %w", r.object.Key(), err)
	}
	intent := r.object.Unstructured()
	intent.Object["spec"] = content["spec"]
	intent.SetUID(live.GetUID())
	intent.SetResourceVersion(live.GetResourceVersion())
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(patch.FieldOwner(Name)), client.ForceOwnership)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the conditions of OperatorCondition %s: %w", r.object.Key(), err)
	}
	log.Info("Reported whether OLM may replace this version")
	return nil
}
