// SPDX-License-Identifier: Apache-2.0

// Package plan reports what modules would change in a cluster, field by field. Each module reconciles on a rehearsal of
// the cluster; the plan is the difference between the objects before and after.
package plan

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

// Verdict is what would happen to a field or an object.
type Verdict string

// Values of Verdict. Own keeps the value and adds the module to its owners.
const (
	InForce Verdict = "in force"
	Own     Verdict = "own"
	Set     Verdict = "set"
	Remove  Verdict = "remove"
	Create  Verdict = "create"
	Delete  Verdict = "delete"
	Blocked Verdict = "blocked"
)

// Row is one field. An object that would be created or deleted has one row without a field. Other states of a module
// are a row without an object.
type Row struct {
	Object  string  `json:"object"`
	Field   string  `json:"field"`
	Live    string  `json:"live"`
	Desired string  `json:"desired"`
	Owner   string  `json:"owner"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

// Module is the plan of one module.
type Module struct {
	Module  string            `json:"module"`
	State   string            `json:"state"`
	Reason  string            `json:"reason"`
	Message string            `json:"message"`
	Rows    []Row             `json:"rows"`
	Result  patch.Result      `json:"-"`
	Writes  []rehearsal.Write `json:"-"`
}

// Options of Compute.
type Options struct {
	ForceConflicts bool
	Release        bool // plan the release of everything that the module owns
	// Server receives each write as a dry run; with nil nothing is sent.
	Server client.Client
}

// Compute plans one module and writes nothing.
func Compute(ctx context.Context, cluster rehearsal.Base, m controller.Module, options Options) (Module, error) {
	rehearse := func(dryRun, force bool, server client.Client) (*rehearsal.Client, patch.Result, error) {
		made, err := rehearsal.New(cluster, server)
		if err != nil {
			return nil, patch.Result{}, err
		}
		out, err := Reconcile(ctx, made, m, controller.Options{DryRun: dryRun, ForceConflicts: force}, options.Release)
		return made, out.Result, err
	}
	_, before, err := rehearse(true, options.ForceConflicts, nil)
	if err != nil {
		return Module{}, err
	}
	after, result, err := rehearse(false, options.ForceConflicts, options.Server)
	if err != nil {
		return Module{}, err
	}
	if options.Server == nil || result.State != patch.Failed {
		result = before // a failure is that of the API server
	}
	out := Module{
		Module: m.Name(), State: result.State.String(), Reason: result.Reason, Message: Message(result), Result: result, Writes: after.Writes(),
	}
	if out.Rows, err = rows(ctx, m, after, out); err != nil {
		return Module{}, err
	}
	if before.State == patch.Blocked && !options.ForceConflicts {
		forced, _, err := rehearse(false, true, nil)
		if err != nil {
			return Module{}, err
		}
		out.Rows = append(out.Rows, blocked(out, forced.Writes())...)
	}
	if len(out.Rows) > 0 && slices.Contains([]patch.State{patch.InForce, patch.WouldChange, patch.Blocked}, result.State) {
		return out, nil
	}
	const none = ownership.None
	out.Rows = append(out.Rows, Row{none, none, none, none, none, Verdict(stateText(result.State)), out.Message})
	return out, nil
}

// Message returns the message of the result with its error.
func Message(result patch.Result) string {
	if result.Err != nil {
		return result.Message + ": " + result.Err.Error()
	}
	return result.Message
}

var inner = regexp.MustCompile(`\B[A-Z]`)

func stateText(state patch.State) string {
	return strings.ToLower(inner.ReplaceAllString(state.String(), " $0"))
}

// NameOf returns the object's name in kubectl's notation.
func NameOf(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind().String()
	return strings.ToLower(kind) + "/" + object.GetName()
}

const maxReconciliations = 20 // of a module that makes one write in each

var errNotSettled = errors.New("the module keeps writing; if another client writes the same objects, the audit log names it")

// Outcome is the result of Reconcile.
type Outcome struct {
	Target *unstructured.Unstructured // the operator's own resource; may be nil
	Result patch.Result
	// Writes are in order, without dry runs. Their objects have only a name.
	Writes []rehearsal.Write
}

// Reconcile reconciles until the module has nothing to write. With releasing it releases what the module owns.
func Reconcile(ctx context.Context, by client.Client, m controller.Module, options controller.Options, releasing bool) (out Outcome, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Name(), err)
		}
	}()
	recorded := &recorder{Client: by}
	var seen client.Client = recorded
	if releasing {
		seen = optedOut{recorded, m.Name()}
	}
	env, err := controller.OnceEnvironment(seen, options, m)
	if err != nil {
		return Outcome{}, err
	}
	reconcile, err := m.Reconciler(env)
	if err != nil {
		return Outcome{}, err
	}
	for range maxReconciliations {
		before := len(recorded.writes)
		recorded.stale = false
		cluster, err := env.Cluster(ctx)
		if err == nil {
			out.Target, out.Result, err = reconcile(ctx, cluster)
		}
		out.Writes = recorded.writes
		if err != nil || len(out.Writes) == before && !recorded.stale {
			return out, err
		}
	}
	return out, errNotSettled
}

type recorder struct {
	client.Client
	writes []rehearsal.Write
	// stale means that an object was changed between its read and a write, after which a controller reconciles again.
	stale bool
}

func (r *recorder) record(object client.Object, deleted bool, dryRun []string, err error) error {
	if apply.StaleOrGone(err) != nil && len(apply.ConflictsOf(err)) == 0 {
		r.stale = true
	}
	if err != nil || len(dryRun) > 0 {
		return err
	}
	gvk, err := r.GroupVersionKindFor(object)
	written := &unstructured.Unstructured{}
	written.SetGroupVersionKind(gvk)
	written.SetName(object.GetName())
	write := rehearsal.Write{After: written}
	if deleted {
		write = rehearsal.Write{Before: written}
	}
	r.writes = append(r.writes, write)
	return err
}

func (r *recorder) Apply(ctx context.Context, intent runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	body := &unstructured.Unstructured{}
	if err := rehearsal.Convert(intent, body); err != nil {
		return err
	}
	return r.record(body, false, (&client.ApplyOptions{}).ApplyOptions(opts).DryRun, r.Client.Apply(ctx, intent, opts...))
}

func (r *recorder) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return r.record(object, false, (&client.PatchOptions{}).ApplyOptions(opts).DryRun, r.Client.Patch(ctx, object, patch, opts...))
}

func (r *recorder) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	return r.record(object, true, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun, r.Client.Delete(ctx, object, opts...))
}

// optedOut adds a module's opt-out annotation to objects that are read, so that the module releases everything.
type optedOut struct {
	client.Client
	module string
}

func (o optedOut) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if err := o.Client.Get(ctx, key, object, opts...); err != nil {
		return err
	}
	return o.annotate(object)
}

func (o optedOut) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := o.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	return meta.EachListItem(list, o.annotate)
}

func (o optedOut) annotate(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	accessor.SetAnnotations(labels.Merge(accessor.GetAnnotations(), labels.Set{patch.OptOutAnnotation: o.module}))
	return nil
}
