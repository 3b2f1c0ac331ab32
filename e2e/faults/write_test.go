// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// event is an audit event of a patch of Deployment "d" that was received after some milliseconds.
func event(id string, after int, version string, change func(*auditv1.Event)) auditv1.Event {
	e := auditv1.Event{
		AuditID: types.UID(id), Stage: auditv1.StageResponseComplete, Verb: "patch", RequestURI: "/apis/apps/v1/namespaces/n/deployments/d?fieldManager=m&force=true",
		ObjectRef:                &auditv1.ObjectReference{APIGroup: "apps", Resource: "deployments", Namespace: "n", Name: "d"},
		RequestReceivedTimestamp: metav1.NewMicroTime(began.Add(time.Duration(after) * time.Millisecond)),
		StageTimestamp:           metav1.NewMicroTime(began.Add(time.Duration(after+1) * time.Millisecond)),
		ResponseStatus:           &metav1.Status{Code: 200},
		RequestObject:            &runtime.Unknown{Raw: []byte(`{"spec":{"replicas":1}}`)},
		ResponseObject:           &runtime.Unknown{Raw: fmt.Appendf(nil, `{"kind":"Deployment","metadata":{"name":"d","resourceVersion":%q}}`, version)},
	}
	e.User.Username = "u"
	if change != nil {
		change(&e)
	}
	return e
}

// A write is effective if its answer has a version of its own, also if the events are in another order or in two parts.
func TestEffectiveWrites(t *testing.T) {
	type got struct {
		Process   string
		Version   uint64
		Effective bool
	}
	refused := func(e *auditv1.Event) { e.ResponseStatus.Code = 409 }
	for name, test := range map[string]struct {
		parts [][]auditv1.Event
		want  []got
	}{
		"one":        {[][]auditv1.Event{{event(mark("p", 1, 1), 0, "7", nil)}}, []got{{"p#1", 7, true}}},
		"no change":  {[][]auditv1.Event{{event("", 0, "7", nil), event("", 5, "7", nil)}}, []got{{"", 7, true}, {"", 7, false}}},
		"two parts":  {[][]auditv1.Event{{event("", 0, "7", nil)}, {event("", 5, "7", nil)}}, []got{{"", 7, true}, {"", 7, false}}},
		"late event": {[][]auditv1.Event{{event("", 5, "8", nil), event("", 0, "7", nil)}}, []got{{"", 7, true}, {"", 8, true}}},
		"refused":    {[][]auditv1.Event{{event("", 0, "7", refused)}}, []got{{"", 7, false}}},
		"refused, then accepted": {[][]auditv1.Event{{
			event("", 0, "", func(e *auditv1.Event) {
				refused(e)
				e.ResponseObject = &runtime.Unknown{Raw: []byte(`{"kind":"Status","metadata":{}}`)}
			}), event("", 5, "7", nil),
		}}, []got{{"", 0, false}, {"", 7, true}}},
		"dry run": {[][]auditv1.Event{{
			event("", 0, "7", func(e *auditv1.Event) { e.RequestURI += "&dryRun=All" }), event("", 5, "7", nil),
		}}, []got{{"", 7, false}, {"", 7, true}}},
		"other object": {[][]auditv1.Event{{
			event("", 0, "7", nil), event("", 5, "7", func(e *auditv1.Event) { e.ObjectRef.Name = "other" }),
		}}, []got{{"", 7, true}, {"", 7, true}}},
		"deleted between versions": {[][]auditv1.Event{{
			event("", 0, "7", nil), event("", 5, "7", func(e *auditv1.Event) { e.Verb = "delete" }), event("", 9, "8", nil),
		}}, []got{{"", 7, true}, {"", 0, true}, {"", 8, true}}},
		"beginning": {[][]auditv1.Event{{event("", 0, "7", func(e *auditv1.Event) { e.Stage = auditv1.StageRequestReceived })}}, nil},
		"read":      {[][]auditv1.Event{{event("", 0, "7", func(e *auditv1.Event) { e.Verb = "get" })}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log Log
			var all []got
			for _, part := range test.parts {
				writes, err := log.Add(part)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range writes {
					all = append(all, got{w.Process, w.Version, w.Effective})
				}
			}
			if diff := cmp.Diff(test.want, all); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodedWrite(t *testing.T) {
	var log Log
	writes, err := log.Add([]auditv1.Event{event(mark("p", 3, 12), 0, "7", func(e *auditv1.Event) { e.ObjectRef.Subresource = "status" })})
	if err != nil {
		t.Fatal(err)
	}
	w := writes[0]
	w.Result = nil
	want := Write{
		Process: "p#3", User: "u", Verb: "patch", Object: Object{"apps", "deployments", "n", "d"}, Subresource: "status", Manager: "m", Code: 200,
		Received: began, Ended: began.Add(time.Millisecond), Version: 7, Effective: true, Body: map[string]any{"spec": map[string]any{"replicas": int64(1)}},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Error(diff)
	}
	if _, err := log.Add([]auditv1.Event{event("", 0, "7", func(e *auditv1.Event) { e.RequestObject.Raw = []byte(`{`) })}); err == nil {
		t.Error("a damaged request is accepted")
	}
	if _, err := log.Add([]auditv1.Event{event("", 0, "seven", nil)}); err == nil {
		t.Error("a damaged version is accepted")
	}
}

// Equal content means equal effects: neither the version that a request is bound to nor the time of a condition counts.
func TestContent(t *testing.T) {
	write := func(body map[string]any, manager string) string {
		return Write{Verb: "patch", Manager: manager, Body: body}.content()
	}
	condition := func(status, at string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "A", "status": status, "lastTransitionTime": at}}}}
	}
	version := func(v string) map[string]any { return map[string]any{"metadata": map[string]any{"resourceVersion": v}} }
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"versions":            {write(version("1"), "m"), write(version("2"), "m"), true},
		"times":               {write(condition("True", "1"), "m"), write(condition("True", "2"), "m"), true},
		"states of condition": {write(condition("True", "1"), "m"), write(condition("False", "1"), "m"), false},
		"managers":            {write(version("1"), "m"), write(version("1"), "n"), false},
		"lists":               {Write{Body: []any{"a"}}.content(), Write{Body: []any{"b"}}.content(), false},
	} {
		if got := test.a == test.b; got != test.want {
			t.Errorf("%s: %t, want %t:\n%s\n%s", name, got, test.want, test.a, test.b)
		}
	}
}
