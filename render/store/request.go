// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// maxGeneratedNameLength is the API server's limit of generateName, before five random characters.
const maxGeneratedNameLength = 63 - 5

var errVersion = errors.New("a new object has no resourceVersion")

func noWatch(action clienttesting.Action) (bool, watch.Interface, error) {
	return true, nil, fmt.Errorf("watch %s: %w", action.GetResource().GroupResource(), ErrUnsupported)
}

func (s *Session) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true, nil, fmt.Errorf("%s %s for %q: %w", action.GetVerb(), action.GetResource().GroupResource(), s.name, ErrClosed)
	}
	object, err := s.answer(action)
	return true, object, err
}

func (s *Session) answer(action clienttesting.Action) (runtime.Object, error) {
	gvr := action.GetResource()
	p := s.store.part(gvr.Group)
	k := key{gvr.GroupResource(), Object{Namespace: action.GetNamespace()}}
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		k.Name = action.Name
		if err := s.store.checkVersion(k, gvr); err != nil {
			return nil, err
		}
		s.reads[k] = s.store.versionOf(k)
		_, object, err := p.react(action)
		return object, err
	case clienttesting.ListActionImpl:
		return s.list(p, action)
	case clienttesting.CreateActionImpl:
		m := metadata(action.Object)
		if m.GetName() == "" && m.GetGenerateName() != "" {
			prefix := m.GetGenerateName()
			m.SetName(prefix[:min(len(prefix), maxGeneratedNameLength)] + strings.ToLower(rand.Text()[:5]))
		}
		k.Name = m.GetName()
		return s.create(p, k, action)
	case clienttesting.UpdateActionImpl:
		k.Name = metadata(action.Object).GetName()
		return s.update(p, k, action)
	case clienttesting.PatchActionImpl:
		k.Name = action.Name
		return s.update(p, k, action)
	case clienttesting.DeleteActionImpl:
		k.Name = action.Name
		return nil, s.delete(p, k, action)
	default:
		return nil, fmt.Errorf("%s %s: %w", action.GetVerb(), gvr.GroupResource(), ErrUnsupported)
	}
}

// checkVersion returns an error if the object is stored in another version, because there is no conversion.
func (s *Store) checkVersion(k key, resource schema.GroupVersionResource) error {
	if last, known := s.writes[k]; known && !last.deleted && last.resource != resource {
		return fmt.Errorf("%s in version %s: %w: it is kept in version %s", k, resource.Version, ErrUnsupported, last.resource.Version)
	}
	return nil
}

func (s *Session) list(p *part, action clienttesting.ListActionImpl) (runtime.Object, error) {
	if fields := action.ListRestrictions.Fields; fields != nil && !fields.Empty() {
		return nil, fmt.Errorf("list %s by field: %w", action.GetResource().GroupResource(), ErrUnsupported)
	}
	for k := range s.store.writes {
		if k.GroupResource == action.GetResource().GroupResource() {
			if err := s.store.checkVersion(k, action.GetResource()); err != nil {
				return nil, err
			}
		}
	}
	l := list{action.GetResource(), action.GetNamespace(), action.ListOptions.LabelSelector}
	s.lists[l] = s.store.listed(l)
	_, object, err := p.react(action)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", action.GetResource().GroupResource(), err)
	}
	slices.SortFunc(items, func(a, b runtime.Object) int {
		m, n := metadata(a), metadata(b)
		return strings.Compare(m.GetNamespace()+"/"+m.GetName(), n.GetNamespace()+"/"+n.GetName())
	})
	for _, item := range items {
		// Items of a list have no kind.
		item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if err := meta.SetList(object, items); err != nil {
		return nil, fmt.Errorf("list %s: %w", action.GetResource().GroupResource(), err)
	}
	if m, err := meta.ListAccessor(object); err == nil {
		m.SetResourceVersion(strconv.FormatInt(s.store.version, 10))
	}
	return object, nil
}

func (s *Session) create(p *part, k key, action clienttesting.CreateActionImpl) (runtime.Object, error) {
	if action.GetSubresource() != "" {
		return nil, fmt.Errorf("create %s/%s: %w", k, action.GetSubresource(), ErrUnsupported)
	}
	if err := s.allow(k, action.GetVerb()); err != nil {
		return nil, err
	}
	if metadata(action.Object).GetResourceVersion() != "" {
		return nil, fmt.Errorf("create %s: %w", k, errVersion)
	}
	if last, known := s.store.writes[k]; known && !last.deleted {
		return nil, apierrors.NewAlreadyExists(k.GroupResource, k.Name)
	}
	sent, err := p.roundTrip(action.Object)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", k, err)
	}
	action.Object = sent
	action.CreateOptions.FieldManager = manager(action.CreateOptions.FieldManager)
	m := metadata(action.Object)
	m.SetNamespace(k.Namespace)
	if hasStatus(p, action.GetResource()) {
		setStatus(action.Object, nil)
	}
	s.store.setServerFields(k, action.GetResource(), action.Object)
	if _, _, err := p.react(action); err != nil {
		return nil, err
	}
	s.recordWrite(k, action)
	return s.store.get(k)
}

// update lets the tracker compute the new object, and then applies the rules of an API server.
func (s *Session) update(p *part, k key, action clienttesting.Action) (runtime.Object, error) {
	if err := s.allow(k, action.GetVerb()); err != nil {
		return nil, err
	}
	subresource := action.GetSubresource()
	if subresource != "" && subresource != "status" {
		return nil, fmt.Errorf("%s %s/%s: %w", action.GetVerb(), k, subresource, ErrUnsupported)
	}
	if update, is := action.(clienttesting.UpdateActionImpl); is {
		sent, err := p.roundTrip(update.Object)
		if err != nil {
			return nil, fmt.Errorf("update %s: %w", k, err)
		}
		update.Object = sent
		action = update
	}
	if err := s.store.checkVersion(k, action.GetResource()); err != nil {
		return nil, err
	}
	separate := hasStatus(p, action.GetResource())
	before, err := s.store.get(k)
	if err != nil {
		return nil, err
	}
	if subresource != "" && !separate {
		return nil, apierrors.NewNotFound(k.GroupResource, k.Name+"/"+subresource)
	}
	if before == nil {
		if patch, is := action.(clienttesting.PatchActionImpl); !is || !isApply(patch) || subresource != "" {
			return nil, apierrors.NewNotFound(k.GroupResource, k.Name)
		}
	}
	if _, _, err := p.react(withFieldManager(action)); err != nil {
		return nil, err
	}
	after, err := p.tracker.Get(action.GetResource(), k.Namespace, k.Name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	if before == nil {
		s.store.setServerFields(k, action.GetResource(), after)
		if err := p.replace(action.GetResource(), after); err != nil {
			return nil, fmt.Errorf("write %s: %w", k, err)
		}
		s.recordWrite(k, action)
		return s.store.get(k)
	}
	if current, expected := metadata(before).GetResourceVersion(), metadata(after).GetResourceVersion(); expected != "" && expected != current {
		if err := p.replace(action.GetResource(), before); err != nil {
			return nil, fmt.Errorf("restore %s: %w", k, err)
		}
		return nil, apierrors.NewConflict(k.GroupResource, k.Name, fmt.Errorf("it has changed: the resourceVersion is %s, not %s", current, expected))
	}
	restoreReadOnly(before, after, subresource, separate)
	if same(before, after) {
		if err := p.replace(action.GetResource(), before); err != nil {
			return nil, fmt.Errorf("restore %s: %w", k, err)
		}
		return s.store.get(k)
	}
	m, old := metadata(after), metadata(before)
	s.store.version++
	m.SetResourceVersion(strconv.FormatInt(s.store.version, 10))
	if hasGeneration(p, action.GetResource()) && !equality.Semantic.DeepEqual(desired(before), desired(after)) {
		m.SetGeneration(old.GetGeneration() + 1)
	}
	if err := p.replace(action.GetResource(), after); err != nil {
		return nil, fmt.Errorf("write %s: %w", k, err)
	}
	s.recordWrite(k, action)
	return s.store.get(k)
}

func (s *Session) delete(p *part, k key, action clienttesting.DeleteActionImpl) error {
	if err := s.allow(k, action.GetVerb()); err != nil {
		return err
	}
	last, known := s.store.writes[k]
	if !known || last.deleted {
		return apierrors.NewNotFound(k.GroupResource, k.Name)
	}
	if _, _, err := p.react(action); err != nil {
		return err
	}
	s.store.version++
	s.recordWrite(k, action)
	return nil
}

// allow refuses and records a write that the loop did not declare.
func (s *Session) allow(k key, verb string) error {
	if anyMatches(s.writes, k) {
		return nil
	}
	err := fmt.Errorf("%s %s: %w by %q", verb, k, ErrUndeclared, s.name)
	s.faults = append(s.faults, err)
	return apierrors.NewForbidden(k.GroupResource, k.Name, err)
}

func (s *Session) recordWrite(k key, action clienttesting.Action) {
	s.store.writes[k] = write{writer: s.name, resource: action.GetResource(), deleted: action.GetVerb() == "delete"}
	s.wrote = append(s.wrote, k.String())
	// The loop's own write does not make its read stale; a later change does.
	s.reads[k] = s.store.versionOf(k)
}

// manager returns the default field manager; an API server uses the client's program name.
func manager(name string) string {
	if name == "" {
		return "sno-render"
	}
	return name
}

func withFieldManager(action clienttesting.Action) clienttesting.Action {
	switch action := action.(type) {
	case clienttesting.UpdateActionImpl:
		action.UpdateOptions.FieldManager = manager(action.UpdateOptions.FieldManager)
		return action
	case clienttesting.PatchActionImpl:
		action.PatchOptions.FieldManager = manager(action.PatchOptions.FieldManager)
		return action
	default:
		return action
	}
}

// restoreReadOnly restores what the request may not change: metadata of the server, and the status or everything else.
func restoreReadOnly(before, after runtime.Object, subresource string, separate bool) {
	old, m := metadata(before), metadata(after)
	if subresource == "status" {
		status := statusOf(after)
		managed, version := m.GetManagedFields(), m.GetResourceVersion()
		assign(after, before.DeepCopyObject())
		setStatus(after, status)
		m = metadata(after)
		m.SetManagedFields(managed)
		m.SetResourceVersion(version)
	} else if separate {
		setStatus(after, statusOf(before))
	}
	m.SetUID(old.GetUID())
	m.SetCreationTimestamp(old.GetCreationTimestamp())
	m.SetGeneration(old.GetGeneration())
	m.SetNamespace(old.GetNamespace())
	after.GetObjectKind().SetGroupVersionKind(before.GetObjectKind().GroupVersionKind())
	setDefaults(after)
}

// same reports whether two states differ only in version and times of managers.
func same(a, b runtime.Object) bool {
	a, b = a.DeepCopyObject(), b.DeepCopyObject()
	for _, object := range []runtime.Object{a, b} {
		m := metadata(object)
		m.SetResourceVersion("")
		fields := m.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		slices.SortFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
			return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.APIVersion, b.APIVersion))
		})
		m.SetManagedFields(fields)
	}
	return equality.Semantic.DeepEqual(a, b)
}

func isApply(patch clienttesting.PatchActionImpl) bool {
	return patch.PatchType == types.ApplyPatchType
}

// setDefaults sets the type of a Secret and merges stringData.
func setDefaults(object runtime.Object) {
	secret, is := object.(*corev1.Secret)
	if !is {
		return
	}
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
	for name, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[name] = []byte(value)
	}
	secret.StringData = nil
}
