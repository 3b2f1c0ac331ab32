// SPDX-License-Identifier: Apache-2.0

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
	// FieldOwner is the field manager of objects.
	FieldOwner = "sno.solonode.github.io/install"
	// StatusFieldOwner is the field manager of statuses, as sno-render writes them.
	StatusFieldOwner = "sno-render"
	// HashAnnotation is the hash of the manifest that an object was applied from. managedFields has no entry of FieldOwner
	// any more once another client has taken all its fields (U-SSA-11).
	HashAnnotation = "sno.solonode.github.io/manifest-hash"
)

// ErrFailed is returned if an object could not be applied; the Report has the causes.
var ErrFailed = errors.New("not applied")

// Failure is a manifest that was not applied.
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

// Report is the result of a run.
type Report struct {
	Applied int
	// Kept are objects that another client has changed since an earlier run applied them. They are not changed.
	Kept   []string
	Failed []Failure
}

// Options of Run.
type Options struct {
	Config *rest.Config
	// Folders are read in order. Namespaces of all of them come first, then definitions of resources, objects, and
	// statuses.
	Folders []Folder
	// Optional reports whether objects of a group are skipped if no manifest defines their kind; nil for no group.
	Optional func(group string) bool
	// RequiredPods have to be Ready before the run ends: "NAMESPACE/PREFIX", or
	// "DESCRIPTION:NAMESPACE/PREFIX|NAMESPACE/PREFIX" of which one is enough. Empty ones are ignored.
	RequiredPods []string
	Interval     time.Duration
}

// Run applies all manifests (R-BIP-13). It succeeds when all are applied and the required pods are Ready. It fails when
// a manifest is refused, after the others are applied, or when the context ends.
func Run(ctx context.Context, o Options, p *phase.Progress) (Report, error) {
	pods, err := parsePods(o.RequiredPods)
	if err != nil {
		return Report{}, err
	}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // priority and fairness of the server limits the rate
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
	pending, failed := read(o.Folders)
	r.report.Failed = failed
	if o.Optional != nil {
		pending = defined(pending, o.Optional)
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
				m.last = err // keep an earlier error rather than that the context has ended
			}
			again = append(again, m)
		}
		pending = again
		if len(pending) == 0 {
			return nil
		}
		// A definition that was just applied adds resources.
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

func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c //nolint:wrapcheck // the caller wraps it
	}
	return err
}

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

// bodyOf returns the body of the request and the hash of the manifest. A status has no annotation for a hash.
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

// changedSince reports whether an earlier run has applied the same manifest, so that a conflict is a later change of
// another client: of a running operator, or of a status that may only grow.
func changedSince(object *unstructured.Unstructured, m manifest, hash string) bool {
	if !m.status {
		return object.GetAnnotations()[HashAnnotation] == hash
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == StatusFieldOwner && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "status"
	})
}

// refused reports whether the server would refuse the same request again. A conflict without a field manager is one of
// concurrent writes.
func refused(err error) bool {
	if apierrors.IsConflict(err) {
		return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
	}
	// An unknown field is an internal error without a reason that is final (U-SSA-12).
	unknownField := apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	if unknownField && strings.Contains(err.Error(), "failed to create typed patch object") {
		return true
	}
	return errors.Is(err, ErrManifest) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
