package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/solonode/sno/install/phase"
)

const (
	// FieldOwner owns the fields of what is applied.
	FieldOwner = "sno.solonode.github.io/install"
	// StatusFieldOwner owns the statuses that sno-render has written.
	StatusFieldOwner = "sno-render"
	// HashAnnotation has the hash of the manifest that an object was applied from: our entry in managedFields is gone when another
	// client has taken all of our fields (U-SSA-11).
	HashAnnotation = "sno.solonode.github.io/manifest-hash"
)

// ErrFailed is in the error of Run when manifests were not applied.
var ErrFailed = errors.New("not applied")

// Failure is a manifest that was not applied, and why.
type Failure struct {
	File string
	// Object is "KIND NAMESPACE/NAME"; empty for a file that cannot be read.
	Object string
	Err    error
}

func (f Failure) Error() string {
	if f.Object == "" {
		return fmt.Sprintf("%s: %v", f.File, f.Err)
	}
	return fmt.Sprintf("%s: %s: %v", f.File, f.Object, f.Err)
}

func (f Failure) Unwrap() error { return f.Err }

// Report is what a run did.
type Report struct {
	// Applied is how many objects and statuses were applied, by this run or an earlier one.
	Applied int
	// Kept are objects that an earlier run had applied, and another client has changed since: they are left as they are.
	Kept []string
	// LeftOut is how many objects of optional groups were left out.
	LeftOut int
	// Failed are the manifests that were not applied.
	Failed []Failure
}

// Options of Run.
type Options struct {
	Config *rest.Config
	// Folders are read in order. Namespaces of all of them come first, then definitions of resources, objects, and statuses.
	Folders []Folder
	// Optional reports whether objects of a group are left out if no manifest defines their kind; nil for none.
	Optional func(group string) bool
	// RequiredPods have to be Ready before the run ends, as "NAMESPACE/PREFIX", or "DESCRIPTION:NAMESPACE/PREFIX|NAMESPACE/PREFIX" of
	// which one is enough. None and empty ones are not waited for.
	RequiredPods []string
	// Interval is between two tries of what may succeed later.
	Interval time.Duration
}

// Run applies all manifests (R-BIP-13). It ends with success when all are applied and the required pods are Ready, with an error when that cannot
// be any more, or when the context ends.
func Run(ctx context.Context, o Options, p *phase.Progress) (Report, error) {
	pods, err := parsePods(o.RequiredPods)
	if err != nil {
		return Report{}, err
	}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // the server decides
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Report{}, fmt.Errorf("apply: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Report{}, fmt.Errorf("apply: %w", err)
	}
	r := &run{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served)), progress: p}
	pending, faults := read(o.Folders)
	r.report.Failed = faults
	if o.Optional != nil {
		all := len(pending)
		pending = defined(pending, o.Optional)
		r.report.LeftOut = all - len(pending)
	}
	if err := r.all(ctx, pending, o.Interval); err != nil {
		return r.report, err
	}
	return r.report, r.wait(ctx, pods, o.Interval)
}

type run struct {
	client   dynamic.Interface
	mapper   meta.ResettableRESTMapper
	progress *phase.Progress
	report   Report
}

// all tries the pending manifests until none is left.
func (r *run) all(ctx context.Context, pending []manifest, interval time.Duration) error {
	err := r.progress.Until(ctx, interval, "manifests", func(ctx context.Context) error {
		var again []manifest
		for _, m := range pending {
			err := r.apply(ctx, m)
			switch {
			case err == nil:
				r.report.Applied++
				continue
			case refused(err):
				r.report.Failed = append(r.report.Failed, Failure{m.file, describe(m.object), err})
				continue
			case ctx.Err() == nil || m.last == nil:
				m.last = err // and not that the context has ended, where more is known
			}
			again = append(again, m)
		}
		pending = again
		if len(pending) == 0 {
			return nil
		}
		// A definition that was applied a moment ago has resources that are to be found now.
		r.mapper.Reset()
		return fmt.Errorf("%d remain, such as %s: %w", len(pending), pending[0], pending[0].last)
	})
	for _, m := range pending {
		r.report.Failed = append(r.report.Failed, Failure{m.file, describe(m.object), m.last})
	}
	if len(r.report.Failed) == 0 {
		return nil
	}
	list := make([]error, len(r.report.Failed))
	for i, f := range r.report.Failed {
		list[i] = f
	}
	why := phase.ErrInput
	if err != nil {
		why = cause(ctx, err)
	}
	return fmt.Errorf("%d manifests %w: %w:\n%w", len(list), ErrFailed, why, errors.Join(list...))
}

// cause returns why the context has ended, without the manifests that are listed anyway.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c //nolint:wrapcheck // it is wrapped
	}
	return err
}

// apply applies one manifest.
func (r *run) apply(ctx context.Context, m manifest) error {
	gvk := m.object.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	body, hash, err := bodyOf(m)
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(r.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := m.object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = r.client.Resource(mapping.Resource).Namespace(namespace)
	}
	owner, subresources := FieldOwner, []string(nil)
	if m.status {
		owner, subresources = StatusFieldOwner, []string{"status"}
	}
	_, err = resource.Patch(ctx, m.object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: owner, FieldValidation: metav1.FieldValidationStrict}, subresources...)
	if !apierrors.IsConflict(err) && (!m.status || !apierrors.IsInvalid(err)) {
		return err //nolint:wrapcheck // the caller names the manifest
	}
	object, readErr := resource.Get(ctx, m.object.GetName(), metav1.GetOptions{})
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if changedSince(object, m, hash) {
		r.report.Kept = append(r.report.Kept, fmt.Sprintf("%s: %v", m, err))
		return nil
	}
	return err //nolint:wrapcheck // the caller names the manifest
}

// bodyOf returns what is sent, and the hash of the manifest that goes with it. A status cannot carry one.
func bodyOf(m manifest) (body []byte, hash string, err error) {
	if body, err = json.Marshal(m.object.Object); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if m.status {
		return body, "", nil
	}
	hash = fmt.Sprintf("%x", sha256.Sum256(body))
	o := m.object.DeepCopy()
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HashAnnotation] = hash
	o.SetAnnotations(annotations)
	if body, err = json.Marshal(o.Object); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return body, hash, nil
}

// changedSince reports whether an earlier run has applied the same manifest. What others have changed since is theirs: operators that run
// already, or a status that may only grow. The hash shows it, because nothing else is left of us when others own all that we set.
func changedSince(object *unstructured.Unstructured, m manifest, hash string) bool {
	if !m.status {
		return object.GetAnnotations()[HashAnnotation] == hash
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == StatusFieldOwner && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "status"
	})
}

// refused reports whether the server will refuse the same request again. A conflict without a field owner is one of two writes at once.
func refused(err error) bool {
	if apierrors.IsConflict(err) {
		return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
	}
	// The server has no reason of its own for a field that the kind does not have: it calls that an internal error.
	unknownField := apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	// The server gives no reason by which a client could tell that it is final (U-SSA-12).
	if unknownField && strings.Contains(err.Error(), "failed to create typed patch object") {
		return true
	}
	return errors.Is(err, ErrManifest) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
