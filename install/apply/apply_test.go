// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/phase"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func folder(name string, texts map[string]string) apply.Folder {
	fsys := fstest.MapFS{}
	for file, text := range texts {
		fsys[file] = &fstest.MapFile{Data: []byte(text)}
	}
	return apply.Folder{Name: name, FS: fsys}
}

func run(t *testing.T, c *rest.Config, limit time.Duration, folders ...apply.Folder) (apply.Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return apply.Run(ctx, apply.Options{Config: c, Folders: folders, Interval: 50 * time.Millisecond}, nil)
}

func configMap(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {k: %q}\n", name, namespace, value)
}

func namespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

// definition returns a resource with a status subresource whose revision may only grow.
func definition(group string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + group + `}
spec:
  group: ` + group + `
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 10}}}
          status:
            type: object
            properties:
              revision: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: must only grow}]}
`
}

func value(t *testing.T, c *rest.Config, namespace, name string) string {
	t.Helper()
	m := fixture.Must(kubernetes.NewForConfigOrDie(c).CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{}))
	return m.Data["k"]
}

// Namespaces are applied first, then definitions, objects and statuses, in any order of files. A second run changes
// nothing (R-BIP-12).
func TestOrder(t *testing.T) {
	c := server.Running(t)
	thing := "apiVersion: order.example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 3}\n"
	status := func(revision int) string {
		return fmt.Sprintf("apiVersion: order.example.com/v1\nkind: Thing\nmetadata: {name: a}\nstatus: {revision: %d}\n", revision)
	}
	rendered := folder("rendered", map[string]string{
		"01.yaml": configMap("order", "a", "rendered"), "02.json": `{"apiVersion":"order.example.com/v1","kind":"Thing","metadata":{"name":"b"}}`,
		"03.yml": thing, "99.yaml": namespace("order"), "status/03-1.yaml": status(1), "status/03-2.yaml": status(2), "notes.txt": "no manifest",
	})
	rendered.Rendered = true
	release := folder("release", map[string]string{
		"0.yaml":        "# only a comment\n---\n" + configMap("order", "a", "release") + "---\n" + configMap("order", "b", "release"),
		"sub/list.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c, namespace: order}\n  data: {k: c}\n",
		"z.yaml":        definition("order.example.com"),
	})
	report := fixture.Must(run(t, c, time.Minute, rendered, release))
	if report.Applied != 9 || len(report.Failed)+len(report.Kept) > 0 {
		t.Errorf("report %+v", report)
	}
	got := []string{value(t, c, "order", "a"), value(t, c, "order", "b"), value(t, c, "order", "c")}
	fixture.Equal(t, "", []string{"rendered", "release", "c"}, got)
	things := dynamic.NewForConfigOrDie(c).Resource(schema.GroupVersionResource{Group: "order.example.com", Version: "v1", Resource: "things"})
	before := fixture.Must(things.Get(t.Context(), "a", metav1.GetOptions{}))
	if revision, _, _ := unstructured.NestedInt64(before.Object, "status", "revision"); revision != 2 {
		t.Errorf("status %v", before.Object["status"])
	}
	again := fixture.Must(run(t, c, time.Minute, rendered, release))
	if again.Applied != 9 || len(again.Kept) != 1 || !strings.Contains(again.Kept[0], "rendered/status/03-1.yaml") {
		t.Errorf("again: %+v", again)
	}
	after := fixture.Must(things.Get(t.Context(), "a", metav1.GetOptions{}))
	fixture.Equal(t, "status after the second run", before.Object["status"], after.Object["status"])
}

// The error names all that cannot be applied, with file, object and field, and the rest is applied (R-BIP-13,
// U-INS-10).
func TestRefused(t *testing.T) {
	c := server.Running(t)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned"}, Data: map[string]string{"k": "theirs"}}
	fixture.Must(kubernetes.NewForConfigOrDie(c).CoreV1().ConfigMaps("default").Create(t.Context(), owned, metav1.CreateOptions{FieldManager: "other"}))
	texts := map[string]string{
		"bad-yaml.yaml":   "kind: [",
		"conflict.yaml":   configMap("default", "owned", "ours"),
		"definition.yaml": definition("refused.example.com"),
		"invalid.yaml":    "apiVersion: refused.example.com/v1\nkind: Thing\nmetadata: {name: large}\nspec: {size: 11}\n",
		"key-twice.yaml":  "apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap\nmetadata: {name: key-twice, namespace: default}\n",
		"no-kind.yaml":    "metadata: {name: a}\n",
		"no-name.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default}\n",
		"twice-1.yaml":    configMap("default", "twice", "1"),
		"twice-2.yaml":    configMap("default", "twice", "2"),
		"twice-same.yaml": configMap("default", "twice", "1"),
		"unknown.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unknown, namespace: default}\ndatum: {k: v}\n",
		"zgood.yaml":      configMap("default", "good", "v"),
	}
	report, err := run(t, c, time.Minute, folder("user", texts))
	fixture.Fails(t, "refused", err, apply.ErrFailed, apply.ErrManifest, phase.ErrInput,
		"user/bad-yaml.yaml: not a manifest: document 1",
		`user/conflict.yaml: ConfigMap default/owned: Apply failed with 1 conflict: conflict with "other" using v1: .data.k`,
		"user/invalid.yaml: Thing large: ", "spec.size", "less than or equal to 10",
		`user/key-twice.yaml: not a manifest: document 1`, `key "kind" already set`,
		`user/no-kind.yaml: not a manifest: document 1`,
		`user/no-name.yaml: not a manifest: document 1: apiVersion "v1", kind "ConfigMap", metadata.name ""`,
		"user/twice-2.yaml: ConfigMap default/twice: two different manifests of one object: user/twice-1.yaml and user/twice-2.yaml",
		"user/unknown.yaml: ConfigMap default/unknown: ", ".datum")
	if len(report.Failed) != 8 || report.Applied != 3 {
		t.Errorf("%d failed and %d applied, want 8 and 3", len(report.Failed), report.Applied)
	}
	if got := value(t, c, "default", "good") + value(t, c, "default", "owned"); got != "vtheirs" {
		t.Errorf("values %s", got)
	}
}

// A kind without a definition is retried until the limit, and the error names it (U-INS-11).
func TestNeverServed(t *testing.T) {
	c := server.Running(t)
	report, err := run(t, c, 2*time.Second, folder("user", map[string]string{
		"a.yaml": "apiVersion: nobody.example.com/v1\nkind: Thing\nmetadata: {name: a}\n", "b.yaml": configMap("missing", "b", "v"), "c.yaml": configMap("default", "c", "v"),
	}))
	fixture.Fails(t, "never served", err, apply.ErrFailed, context.DeadlineExceeded,
		"user/a.yaml: Thing a: ", `no matches for kind "Thing" in version "nobody.example.com/v1"`, `user/b.yaml: ConfigMap missing/b: namespaces "missing" not found`)
	if errors.Is(err, phase.ErrInput) || len(report.Failed) != 2 || report.Applied != 1 {
		t.Errorf("%v, report %+v", err, report)
	}
}

// When a killed run continues, changes by a running operator are kept. A manifest that was edited since is applied again,
// and its conflict is an error.
func TestChangedSince(t *testing.T) {
	c := server.Running(t)
	manifests := folder("user", map[string]string{"a.yaml": configMap("default", "since", "ours")})
	fixture.Must(run(t, c, time.Minute, manifests))
	client := kubernetes.NewForConfigOrDie(c).CoreV1().ConfigMaps("default")
	patch := []byte(`{"data":{"k":"theirs"}}`)
	fixture.Must(client.Patch(t.Context(), "since", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "operator"}))
	report := fixture.Must(run(t, c, time.Minute, manifests))
	if got := value(t, c, "default", "since"); got != "theirs" || len(report.Kept) != 1 || !strings.Contains(report.Kept[0], `conflict with "operator"`) {
		t.Errorf("value %s, report %+v", got, report)
	}
	_, err := run(t, c, time.Minute, folder("user", map[string]string{"a.yaml": configMap("default", "since", "new")}))
	fixture.Fails(t, "edited since", err, apply.ErrFailed, `conflict with "operator"`)
}

// flaky returns a proxy that fails like a server that starts, is overloaded or is interrupted.
func flaky(t *testing.T, c *rest.Config, fail func(n int64, w http.ResponseWriter) bool) *rest.Config {
	t.Helper()
	target := fixture.Must(url.Parse(c.Host))
	transport := fixture.Must(rest.TransportFor(c))
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fail(n.Add(1), w) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// Lost connections, 429 and 5xx are retried.
func TestFlaky(t *testing.T) {
	c := flaky(t, server.Running(t), func(n int64, w http.ResponseWriter) bool {
		switch n % 7 { // an attempt with all manifests is 8 requests, so that each gets each error
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			http.Error(w, "overloaded", http.StatusTooManyRequests)
		case 3:
			http.Error(w, "starting", http.StatusServiceUnavailable)
		default:
			return false
		}
		return true
	})
	texts := map[string]string{"0.yaml": namespace("flaky")}
	for i := range 5 {
		texts[fmt.Sprintf("%d.yaml", i+1)] = configMap("flaky", fmt.Sprintf("m-%d", i), "v")
	}
	if report, err := run(t, c, time.Minute, folder("user", texts)); err != nil || report.Applied != 6 {
		t.Errorf("report %+v, %v", report, err)
	}
}

// After a run was killed, the same call applies the rest (R-BIP-3, U-INS-11).
func TestKilled(t *testing.T) {
	texts := map[string]string{"00.yaml": namespace("killed")}
	for i := range 8 {
		texts[fmt.Sprintf("%02d.yaml", i+1)] = configMap("killed", fmt.Sprintf("m-%d", i), "v")
	}
	ctx, kill := context.WithCancel(t.Context())
	applied := 0
	c := flaky(t, server.Running(t), func(int64, http.ResponseWriter) bool {
		if applied++; applied == 8 { // some are discovery
			kill()
		}
		return false
	})
	o := apply.Options{Config: c, Folders: []apply.Folder{folder("user", texts)}, Interval: time.Millisecond}
	report, err := apply.Run(ctx, o, nil)
	if !errors.Is(err, context.Canceled) || report.Applied == 0 || report.Applied+len(report.Failed) != 9 {
		t.Fatalf("%v; applied %d, failed %d", err, report.Applied, len(report.Failed))
	}
	if report, err := apply.Run(t.Context(), o, nil); err != nil || report.Applied != 9 {
		t.Errorf("report %+v, %v", report, err)
	}
}

// Required pods are found by namespace and prefix of the name; the empty one, as bootstrap in place has it, is ignored.
func TestRequiredPods(t *testing.T) {
	c := server.Running(t)
	client := kubernetes.NewForConfigOrDie(c).CoreV1()
	if _, err := client.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "etcd-cp-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	pod = fixture.Must(client.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}))
	wait := func(limit time.Duration, required ...string) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := apply.Run(ctx, apply.Options{Config: c, RequiredPods: required, Interval: 20 * time.Millisecond}, nil)
		return err
	}
	if err := wait(time.Minute, ""); err != nil {
		t.Errorf("no required pods: %v", err)
	}
	fixture.Fails(t, "a pod that is not Ready", wait(300*time.Millisecond, "default/etcd"), context.DeadlineExceeded, "required pod default/etcd")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	fixture.Must(client.Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))
	if err := wait(time.Minute, "default/etcd", "any:none/x|default/etcd-cp"); err != nil {
		t.Errorf("a pod that is Ready: %v", err)
	}
	for _, wrong := range []string{"etcd", "a/b/c", "x:", "/a", "a/"} {
		fixture.Fails(t, wrong, wait(time.Minute, wrong), apply.ErrRequiredPod, phase.ErrInput)
	}
}

// Objects of an optional kind are skipped without a definition among the manifests, and applied with one (R-AIO-3).
func TestOptional(t *testing.T) {
	c := server.Running(t)
	thing := func(group string) string {
		return "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 3}\n"
	}
	texts := map[string]string{
		"a.yaml": thing("undefined.optional.example.com"), "b.yaml": thing("defined.optional.example.com"), "c.yaml": configMap("default", "other", "v"),
		"status/b.yaml": "apiVersion: undefined.optional.example.com/v1\nkind: Thing\nmetadata: {name: a}\nstatus: {revision: 1}\n",
		"z.yaml":        definition("defined.optional.example.com"),
	}
	rendered := folder("rendered", texts)
	rendered.Rendered = true
	o := apply.Options{
		Config: c, Folders: []apply.Folder{rendered}, Interval: 20 * time.Millisecond, Optional: func(group string) bool { return strings.HasSuffix(group, ".optional.example.com") },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := apply.Run(ctx, o, nil)
	if err != nil || report.Applied != 3 {
		t.Fatalf("report %+v, %v", report, err)
	}
	for group, want := range map[string]bool{"undefined": false, "defined": true} {
		things := schema.GroupVersionResource{Group: group + ".optional.example.com", Version: "v1", Resource: "things"}
		if _, err := dynamic.NewForConfigOrDie(c).Resource(things).Get(t.Context(), "a", metav1.GetOptions{}); (err == nil) != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", group, err)
		}
	}
	// If the group is not optional, the same manifest is an error.
	o.Optional = func(group string) bool { return group == "optional.example.com" }
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = apply.Run(ctx, o, nil)
	fixture.Fails(t, "a group that is not optional", err, apply.ErrFailed, "rendered/a.yaml: Thing a: ")
}
