// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	operatorv1client "github.com/openshift/client-go/operator/clientset/versioned/typed/operator/v1"
	"github.com/openshift/library-go/pkg/operator/v1helpers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/render/store"
)

// Operator is the resource of operator.openshift.io, always named "cluster", with the state of an operator: the
// observed configuration, the latest revision, and the revision of each node.
type Operator struct{ *kind }

type kind struct {
	// operand is the operator's prefix of the static pod's controllers, as in kube-apiserver-RevisionController.
	resource, kind, operand string
	empty                   func() (runtime.Object, state)
	access                  func(operatorv1client.OperatorV1Interface) access
}

// The operators of the control plane.
var (
	Etcd = operatorOf("etcds", "Etcd", "etcd", operatorv1client.OperatorV1Interface.Etcds, func(o *operatorv1.Etcd) state {
		return state{&o.ObjectMeta, &o.Spec.StaticPodOperatorSpec, &o.Status.StaticPodOperatorStatus}
	})
	KubeAPIServer = operatorOf("kubeapiservers", "KubeAPIServer", "kube-apiserver",
		operatorv1client.OperatorV1Interface.KubeAPIServers, func(o *operatorv1.KubeAPIServer) state {
			return state{&o.ObjectMeta, &o.Spec.StaticPodOperatorSpec, &o.Status.StaticPodOperatorStatus}
		})
	KubeControllerManager = operatorOf("kubecontrollermanagers", "KubeControllerManager", "kube-controller-manager",
		operatorv1client.OperatorV1Interface.KubeControllerManagers, func(o *operatorv1.KubeControllerManager) state {
			return state{&o.ObjectMeta, &o.Spec.StaticPodOperatorSpec, &o.Status.StaticPodOperatorStatus}
		})
	KubeScheduler = operatorOf("kubeschedulers", "KubeScheduler", "kube-scheduler",
		operatorv1client.OperatorV1Interface.KubeSchedulers, func(o *operatorv1.KubeScheduler) state {
			return state{&o.ObjectMeta, &o.Spec.StaticPodOperatorSpec, &o.Status.StaticPodOperatorStatus}
		})
)

// operatorOf returns the operator of a resource. stateOf returns the parts of an object, not copies.
func operatorOf[T any, P interface {
	*T
	runtime.Object
}, C typedClient[P]](resource, name, operand string, client func(operatorv1client.OperatorV1Interface) C, stateOf func(P) state) Operator {
	return Operator{&kind{
		resource, name, operand,
		func() (runtime.Object, state) {
			object := P(new(T))
			return object, stateOf(object)
		},
		func(c operatorv1client.OperatorV1Interface) access { return accessTo(client(c), stateOf) },
	}}
}

const (
	operatorGroup = "operator.openshift.io"
	instance      = "cluster"
)

// String returns the name of the resource, such as kubeapiservers.
func (o Operator) String() string { return o.resource }

// Kind returns the kind of the operator's resource.
func (o Operator) Kind() string { return o.kind.kind }

// Resource returns the operator's resource before any loop has run: managed, without an observed configuration.
func (o Operator) Resource() runtime.Object {
	resource, s := o.empty()
	s.metadata.Name, s.spec.ManagementState = instance, operatorv1.Managed
	return resource
}

// Pattern returns the pattern of the operator's resource.
func (o Operator) Pattern() store.Pattern {
	return store.Pattern{Group: operatorGroup, Resource: o.resource, Name: instance}
}

// state is the common part of these resources.
type state struct {
	metadata *metav1.ObjectMeta
	spec     *operatorv1.StaticPodOperatorSpec
	status   *operatorv1.StaticPodOperatorStatus
}

type access struct {
	get          func(context.Context) (state, error)
	updateSpec   func(context.Context, func(state) error) (state, error)
	updateStatus func(context.Context, func(state) error) (state, error)
	applyStatus  func(ctx context.Context, manager string, patch []byte) error
}

type typedClient[T any] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

func accessTo[T any](client typedClient[T], stateOf func(T) state) access {
	update := func(write func(context.Context, T, metav1.UpdateOptions) (T, error)) func(context.Context, func(state) error) (state, error) {
		return func(ctx context.Context, change func(state) error) (state, error) {
			object, err := client.Get(ctx, instance, metav1.GetOptions{})
			if err != nil {
				return state{}, err
			}
			if err := change(stateOf(object)); err != nil {
				return state{}, err
			}
			if object, err = write(ctx, object, metav1.UpdateOptions{}); err != nil {
				return state{}, err
			}
			return stateOf(object), nil
		}
	}
	return access{
		get: func(ctx context.Context) (state, error) {
			object, err := client.Get(ctx, instance, metav1.GetOptions{})
			if err != nil {
				return state{}, err
			}
			return stateOf(object), nil
		},
		updateSpec:   update(client.Update),
		updateStatus: update(client.UpdateStatus),
		// Ownership is forced, as by the operators' client: each controller has a field manager of its own.
		applyStatus: func(ctx context.Context, manager string, patch []byte) error {
			_, err := client.Patch(ctx, instance, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)}, "status")
			return err
		},
	}
}

// operatorClient implements the part of library-go's client of an operator's resource that its controllers use here.
type operatorClient struct {
	v1helpers.OperatorClient // nil: the other methods panic
	access
	kind string
}

func (o Operator) client(s *store.Session) operatorClient {
	return operatorClient{access: o.access(s.Operator().OperatorV1()), kind: o.Kind()}
}

func (c operatorClient) Informer() cache.SharedIndexInformer { return idleInformer{} }

func (c operatorClient) read(ctx context.Context) (state, error) {
	found, err := c.get(ctx)
	if err != nil {
		return state{}, fmt.Errorf("read %s %s: %w", c.kind, instance, err)
	}
	return found, nil
}

func (c operatorClient) GetOperatorState() (*operatorv1.OperatorSpec, *operatorv1.OperatorStatus, string, error) {
	return c.GetOperatorStateWithQuorum(background())
}

func (c operatorClient) GetOperatorStateWithQuorum(ctx context.Context) (*operatorv1.OperatorSpec, *operatorv1.OperatorStatus, string, error) {
	found, err := c.read(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	return &found.spec.OperatorSpec, &found.status.OperatorStatus, found.metadata.ResourceVersion, nil
}

func (c operatorClient) UpdateOperatorSpec(ctx context.Context, version string, in *operatorv1.OperatorSpec) (*operatorv1.OperatorSpec, string, error) {
	updated, err := c.updateSpec(ctx, func(s state) error {
		s.metadata.ResourceVersion, s.spec.OperatorSpec = version, *in
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return &updated.spec.OperatorSpec, updated.metadata.ResourceVersion, nil
}

// ApplyOperatorStatus keeps lastTransitionTime of conditions whose status has not changed, as the operators' client
// does.
func (c operatorClient) ApplyOperatorStatus(ctx context.Context, manager string, status *operatorv1ac.OperatorStatusApplyConfiguration) error {
	found, err := c.read(ctx)
	if err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		condition.LastTransitionTime = &now
		current := v1helpers.FindOperatorCondition(found.status.Conditions, ptr.Deref(condition.Type, ""))
		if current != nil && current.Status == ptr.Deref(condition.Status, "") {
			condition.LastTransitionTime = &current.LastTransitionTime
		}
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": operatorGroup + "/v1", "kind": c.kind, "metadata": map[string]any{"name": instance}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("apply the status of %s %s: %w", c.kind, instance, err)
	}
	return c.applyStatus(ctx, manager, patch)
}
