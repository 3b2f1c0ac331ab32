// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/solonode/sno/e2e/framework"
)

// ErrAudit is returned for an audit event that cannot be decoded.
var ErrAudit = errors.New("unreadable audit event")

// Object identifies an object in the audit log.
type Object struct{ Group, Resource, Namespace, Name string }

func (o Object) String() string {
	resource := o.Resource
	if o.Group != "" {
		resource += "." + o.Group
	}
	return strings.TrimSuffix(resource+"/"+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), "/")
}

// Write is a write request in the audit log.
type Write struct {
	// Process is the run of a controller that sent it, by the mark of its Proxy; empty for another client.
	Process, User string
	Verb          string
	Object        Object
	Subresource   string
	Manager       string // the field manager, where the request names one
	DryRun        bool
	Code          int32
	Received      time.Time
	Ended         time.Time
	// Version is the object's resourceVersion after the write. 0 if the answer has none, such as that of an eviction.
	Version uint64
	// Effective reports whether the write was accepted and changed something.
	Effective bool
	Body      any // decoded JSON of the request; nil without a body
	// Result is the object in the answer; nil if the answer has none.
	Result *unstructured.Unstructured
}

func (w Write) String() string {
	verb := w.Verb
	if w.Subresource != "" {
		verb += " " + w.Subresource + " of"
	}
	by := w.User
	if w.Process != "" {
		by = w.Process
	}
	return fmt.Sprintf("%s %s by %s at %s (%d)", verb, w.Object, by, w.Received.UTC().Format("15:04:05.000"), w.Code)
}

// ours reports whether a controller made the write.
func (w Write) ours() bool {
	return strings.HasPrefix(w.User, "system:serviceaccount:"+framework.SystemNamespace+":")
}

// accepted reports whether the API server carried the request out.
func (w Write) accepted() bool {
	return w.Code >= http.StatusOK && w.Code < http.StatusMultipleChoices && !w.DryRun
}

// Log turns audit events into writes. It has to read the whole audit log, in parts: it remembers the versions of all
// objects, because the answer to a write that changes nothing has the version of an earlier write. Writes of objects
// whose bodies the audit policy leaves out count as effective.
type Log struct{ versions map[Object]map[uint64]bool }

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Add returns the writes in the next part of the log in the order in which they took effect, as far as that is known.
func (l *Log) Add(events []auditv1.Event) ([]Write, error) {
	if l.versions == nil {
		l.versions = map[Object]map[uint64]bool{}
	}
	var writes []Write
	for i := range events {
		event := &events[i]
		if event.Stage != auditv1.StageResponseComplete && event.Stage != auditv1.StagePanic || !slices.Contains(writeVerbs, event.Verb) || event.ObjectRef == nil {
			continue
		}
		w, err := writeOf(event)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	slices.SortStableFunc(writes, func(a, b Write) int { return a.Received.Compare(b.Received) })
	for i := range writes {
		w := &writes[i]
		w.Effective = w.accepted()
		if w.Version == 0 {
			continue
		}
		if l.versions[w.Object] == nil {
			l.versions[w.Object] = map[uint64]bool{}
		}
		w.Effective = w.Effective && !l.versions[w.Object][w.Version]
		if !w.DryRun {
			l.versions[w.Object][w.Version] = true
		}
	}
	return inOrder(writes), nil
}

// inOrder sorts writes by their versions, which all objects share. A write without one, such as a deletion, follows the
// versions of all writes that were received before it.
func inOrder(writes []Write) []Write {
	type placed struct {
		Write
		place uint64 // an even number is that of a version
	}
	all, last := make([]placed, len(writes)), uint64(0)
	for i, w := range writes {
		last = max(last, w.Version)
		if all[i] = (placed{w, 2 * w.Version}); w.Version == 0 {
			all[i].place = 2*last + 1
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	sorted := make([]Write, len(writes))
	for i := range all {
		sorted[i] = all[i].Write
	}
	return sorted
}

func writeOf(event *auditv1.Event) (Write, error) {
	ref := event.ObjectRef
	w := Write{
		Process: processOf(string(event.AuditID)), User: event.User.Username, Verb: event.Verb, Subresource: ref.Subresource,
		Object:   Object{Group: ref.APIGroup, Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name},
		Received: event.RequestReceivedTimestamp.Time, Ended: event.StageTimestamp.Time,
	}
	if event.ResponseStatus != nil {
		w.Code = event.ResponseStatus.Code
	}
	if uri, err := url.ParseRequestURI(event.RequestURI); err == nil {
		w.Manager, w.DryRun = uri.Query().Get("fieldManager"), uri.Query().Get("dryRun") != ""
	}
	var err error
	if w.Body, err = decode(event.RequestObject); err != nil {
		return Write{}, fmt.Errorf("%w: the request of %s: %w", ErrAudit, w, err)
	}
	answer, err := decode(event.ResponseObject)
	if err != nil {
		return Write{}, fmt.Errorf("%w: the answer to %s: %w", ErrAudit, w, err)
	}
	content, ok := answer.(map[string]any)
	if !ok {
		return w, nil
	}
	result := &unstructured.Unstructured{Object: content}
	if result.GetKind() == "Status" || result.GetResourceVersion() == "" || w.Verb == "delete" || w.Verb == "deletecollection" {
		return w, nil
	}
	if w.Version, err = strconv.ParseUint(result.GetResourceVersion(), 10, 64); err != nil {
		return Write{}, fmt.Errorf("%w: the answer to %s: %w", ErrAudit, w, err)
	}
	w.Result = result
	if w.Object.Name == "" {
		w.Object.Name = result.GetName() // of a create request
	}
	return w, nil
}

func decode(body *runtime.Unknown) (any, error) {
	if body == nil || len(body.Raw) == 0 {
		return nil, nil
	}
	if list := bytes.TrimSpace(body.Raw); list[0] != '{' {
		var value any
		return value, json.Unmarshal(list, &value)
	}
	// Unstructured decoding keeps integers, but needs a kind.
	wrapped := append(append([]byte(`{"apiVersion":"v1","kind":"Body","body":`), body.Raw...), '}')
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(wrapped); err != nil {
		return nil, err
	}
	return u.Object["body"], nil
}

// content returns equal texts for write requests with equal effects: it leaves out the version that the request is
// bound to and times of conditions.
func (w Write) content() string {
	body := runtime.DeepCopyJSONValue(w.Body)
	if fields, ok := body.(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "managedFields", "creationTimestamp", "generation", "uid"} {
			unstructured.RemoveNestedField(fields, "metadata", name)
		}
		conditions, _, _ := unstructured.NestedFieldNoCopy(fields, "status", "conditions")
		list, _ := conditions.([]any)
		for _, each := range list {
			if condition, ok := each.(map[string]any); ok {
				delete(condition, "lastTransitionTime")
			}
		}
	}
	text, _ := json.Marshal(body) // of decoded JSON
	return strings.Join([]string{w.Verb, w.Subresource, w.Manager, string(text)}, " ")
}
