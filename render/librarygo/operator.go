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
	"github.com/openshift/library-go/pkg/apiserver/jsonpatch"
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
	empty                   func(operatorv1.StaticPodOperatorSpec) runtime.Object
	access                  func(operatorv1client.OperatorV1Interface) access
}

// The operators of the control plane.
var (
	Etcd = Operator{&kind{
		"etcds", "Etcd", "etcd",
		func(spec operatorv1.StaticPodOperatorSpec) runtime.Object {
			return &operatorv1.Etcd{Spec: operatorv1.EtcdSpec{StaticPodOperatorSpec: spec}}
		},
		func(c operatorv1client.OperatorV1Interface) access {
			return accessTo(c.Etcds(), func(e *operatorv1.Etcd) state {
				return state{&e.ObjectMeta, &e.Spec.StaticPodOperatorSpec, &e.Status.StaticPodOperatorStatus}
			})
		},
	}}
	KubeAPIServer = Operator{&kind{
		"kubeapiservers", "KubeAPIServer", "kube-apiserver",
		func(spec operatorv1.StaticPodOperatorSpec) runtime.Object {
			return &operatorv1.KubeAPIServer{Spec: operatorv1.KubeAPIServerSpec{StaticPodOperatorSpec: spec}}
		},
		func(c operatorv1client.OperatorV1Interface) access {
			return accessTo(c.KubeAPIServers(), func(k *operatorv1.KubeAPIServer) state {
				return state{&k.ObjectMeta, &k.Spec.StaticPodOperatorSpec, &k.Status.StaticPodOperatorStatus}
			})
		},
	}}
	KubeControllerManager = Operator{&kind{
		"kubecontrollermanagers", "KubeControllerManager", "kube-controller-manager",
		func(spec operatorv1.StaticPodOperatorSpec) runtime.Object {
			return &operatorv1.KubeControllerManager{Spec: operatorv1.KubeControllerManagerSpec{StaticPodOperatorSpec: spec}}
		},
		func(c operatorv1client.OperatorV1Interface) access {
			return accessTo(c.KubeControllerManagers(), func(k *operatorv1.KubeControllerManager) state {
				return state{&k.ObjectMeta, &k.Spec.StaticPodOperatorSpec, &k.Status.StaticPodOperatorStatus}
			})
		},
	}}
	KubeScheduler = Operator{&kind{
		"kubeschedulers", "KubeScheduler", "kube-scheduler",
		func(spec operatorv1.StaticPodOperatorSpec) runtime.Object {
			return &operatorv1.KubeScheduler{Spec: operatorv1.KubeSchedulerSpec{StaticPodOperatorSpec: spec}}
		},
		func(c operatorv1client.OperatorV1Interface) access {
			return accessTo(c.KubeSchedulers(), func(k *operatorv1.KubeScheduler) state {
				return state{&k.ObjectMeta, &k.Spec.StaticPodOperatorSpec, &k.Status.StaticPodOperatorStatus}
			})
		},
	}}
)

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
	resource := o.empty(operatorv1.StaticPodOperatorSpec{OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}})
	if m, is := resource.(metav1.Object); is {
		m.SetName(instance)
	}
	return resource
}

// Pattern returns the pattern of the operator's resource.
func (o Operator) Pattern() store.Pattern {
	return store.Pattern{Group: operatorGroup, Resource: o.resource, Name: instance}
}

// state is the common part of these resources, not a copy.
type state struct {
	metadata *metav1.ObjectMeta
	spec     *operatorv1.StaticPodOperatorSpec
	status   *operatorv1.StaticPodOperatorStatus
}

type access struct {
	get    func(context.Context) (state, error)
	update func(context.Context, func(state), ...string) (state, error)
	patch  func(context.Context, types.PatchType, []byte, metav1.PatchOptions, ...string) error
}

type typedClient[T any] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

func accessTo[T any](client typedClient[T], stateOf func(T) state) access {
	return access{
		get: func(ctx context.Context) (state, error) {
			object, err := client.Get(ctx, instance, metav1.GetOptions{})
			if err != nil {
				return state{}, err
			}
			return stateOf(object), nil
		},
		update: func(ctx context.Context, change func(state), subresources ...string) (state, error) {
			object, err := client.Get(ctx, instance, metav1.GetOptions{})
			if err != nil {
				return state{}, err
			}
			change(stateOf(object))
			write := client.Update
			if len(subresources) > 0 {
				write = client.UpdateStatus
			}
			if object, err = write(ctx, object, metav1.UpdateOptions{}); err != nil {
				return state{}, err
			}
			return stateOf(object), nil
		},
		patch: func(ctx context.Context, patchType types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) error {
			_, err := client.Patch(ctx, instance, patchType, patch, options, subresources...)
			return err
		},
	}
}

// operatorClient implements library-go's client of an operator's resource with the store.
type operatorClient struct {
	access
	kind string
}

var _ v1helpers.StaticPodOperatorClient = operatorClient{}

func (o Operator) client(s *store.Session) operatorClient {
	return operatorClient{o.access(s.Operator().OperatorV1()), o.Kind()}
}

func (c operatorClient) Informer() cache.SharedIndexInformer { return idleInformer{} }

func (c operatorClient) GetObjectMeta() (*metav1.ObjectMeta, error) {
	found, err := c.get(background())
	return found.metadata, err
}

func (c operatorClient) GetOperatorState() (*operatorv1.OperatorSpec, *operatorv1.OperatorStatus, string, error) {
	return c.GetOperatorStateWithQuorum(background())
}

func (c operatorClient) GetOperatorStateWithQuorum(ctx context.Context) (*operatorv1.OperatorSpec, *operatorv1.OperatorStatus, string, error) {
	spec, status, version, err := c.GetStaticPodOperatorStateWithQuorum(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	return &spec.OperatorSpec, &status.OperatorStatus, version, nil
}

func (c operatorClient) GetStaticPodOperatorState() (*operatorv1.StaticPodOperatorSpec, *operatorv1.StaticPodOperatorStatus, string, error) {
	return c.GetStaticPodOperatorStateWithQuorum(background())
}

func (c operatorClient) GetStaticPodOperatorStateWithQuorum(ctx context.Context) (*operatorv1.StaticPodOperatorSpec, *operatorv1.StaticPodOperatorStatus, string, error) {
	found, err := c.get(ctx)
	if err != nil {
		return nil, nil, "", fmt.Errorf("read %s %s: %w", c.kind, instance, err)
	}
	return found.spec, found.status, found.metadata.ResourceVersion, nil
}

func (c operatorClient) UpdateOperatorSpec(ctx context.Context, version string, in *operatorv1.OperatorSpec) (*operatorv1.OperatorSpec, string, error) {
	updated, err := c.update(ctx, func(s state) {
		s.metadata.ResourceVersion = version
		s.spec.OperatorSpec = *in
	})
	if err != nil {
		return nil, "", err
	}
	return &updated.spec.OperatorSpec, updated.metadata.ResourceVersion, nil
}

func (c operatorClient) UpdateOperatorStatus(ctx context.Context, version string, in *operatorv1.OperatorStatus) (*operatorv1.OperatorStatus, error) {
	updated, err := c.update(ctx, func(s state) {
		s.metadata.ResourceVersion = version
		s.status.OperatorStatus = *in
	}, "status")
	if err != nil {
		return nil, err
	}
	return &updated.status.OperatorStatus, nil
}

func (c operatorClient) UpdateStaticPodOperatorSpec(ctx context.Context, version string, in *operatorv1.StaticPodOperatorSpec) (*operatorv1.StaticPodOperatorSpec, string, error) {
	updated, err := c.update(ctx, func(s state) {
		s.metadata.ResourceVersion = version
		*s.spec = *in
	})
	if err != nil {
		return nil, "", err
	}
	return updated.spec, updated.metadata.ResourceVersion, nil
}

func (c operatorClient) UpdateStaticPodOperatorStatus(ctx context.Context, version string, in *operatorv1.StaticPodOperatorStatus) (*operatorv1.StaticPodOperatorStatus, error) {
	updated, err := c.update(ctx, func(s state) {
		s.metadata.ResourceVersion = version
		*s.status = *in
	}, "status")
	if err != nil {
		return nil, err
	}
	return updated.status, nil
}

func (c operatorClient) ApplyOperatorSpec(ctx context.Context, manager string, spec *operatorv1ac.OperatorSpecApplyConfiguration) error {
	return c.apply(ctx, manager, "spec", spec)
}

func (c operatorClient) ApplyStaticPodOperatorSpec(ctx context.Context, manager string, spec *operatorv1ac.StaticPodOperatorSpecApplyConfiguration) error {
	return c.apply(ctx, manager, "spec", spec)
}

func (c operatorClient) ApplyOperatorStatus(ctx context.Context, manager string, status *operatorv1ac.OperatorStatusApplyConfiguration) error {
	if err := c.setTransitionTimes(ctx, status.Conditions); err != nil {
		return err
	}
	return c.apply(ctx, manager, "status", status)
}

func (c operatorClient) ApplyStaticPodOperatorStatus(ctx context.Context, manager string, status *operatorv1ac.StaticPodOperatorStatusApplyConfiguration) error {
	if err := c.setTransitionTimes(ctx, status.Conditions); err != nil {
		return err
	}
	return c.apply(ctx, manager, "status", status)
}

func (c operatorClient) PatchOperatorStatus(ctx context.Context, patch *jsonpatch.PatchSet) error {
	data, err := patch.Marshal()
	if err != nil {
		return fmt.Errorf("patch the status of %s %s: %w", c.kind, instance, err)
	}
	return c.patch(ctx, types.JSONPatchType, data, metav1.PatchOptions{}, "status")
}

func (c operatorClient) PatchStaticOperatorStatus(ctx context.Context, patch *jsonpatch.PatchSet) error {
	return c.PatchOperatorStatus(ctx, patch)
}

// setTransitionTimes keeps lastTransitionTime of conditions whose status has not changed, as the operators' client
// does.
func (c operatorClient) setTransitionTimes(ctx context.Context, conditions []operatorv1ac.OperatorConditionApplyConfiguration) error {
	found, err := c.get(ctx)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", c.kind, instance, err)
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for i := range conditions {
		condition := &conditions[i]
		condition.LastTransitionTime = &now
		current := v1helpers.FindOperatorCondition(found.status.Conditions, ptr.Deref(condition.Type, ""))
		if current != nil && current.Status == ptr.Deref(condition.Status, "") {
			condition.LastTransitionTime = &current.LastTransitionTime
		}
	}
	return nil
}

// apply forces ownership, as the operators' client does: each controller has a field manager of its own.
func (c operatorClient) apply(ctx context.Context, manager, field string, value any) error {
	data, err := json.Marshal(map[string]any{
		"apiVersion": operatorGroup + "/v1",
		"kind":       c.kind,
		"metadata":   map[string]any{"name": instance},
		field:        value,
	})
	if err != nil {
		return fmt.Errorf("apply the %s of %s %s: %w", field, c.kind, instance, err)
	}
	var subresources []string
	if field == "status" {
		subresources = []string{"status"}
	}
	return c.patch(ctx, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)}, subresources...)
}
