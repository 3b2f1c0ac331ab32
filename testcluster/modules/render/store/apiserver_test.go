// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorclient "github.com/openshift/client-go/operator/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/render/store"
	"github.com/solonode/sno/testcluster/apiserver"
)

type api struct {
	kube     kubernetes.Interface
	operator operatorclient.Interface
}

type journal struct {
	lines []string
	// The store records managers of a status without a subresource. No loop reads them.
	managers bool
	seen     map[string]string
}

func (j *journal) record(request string, object runtime.Object, err error) {
	answer := ""
	switch {
	case err != nil:
		answer = string(apierrors.ReasonForError(err))
	case object != nil && !isNil(object):
		answer = j.text(object)
	}
	j.lines = append(j.lines, request+": "+answer)
}

func isNil(object runtime.Object) bool {
	_, err := meta.Accessor(object)
	return err != nil && !meta.IsListType(object)
}

func (j *journal) text(object runtime.Object) string {
	encoded, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return err.Error()
	}
	delete(fields, "kind")
	delete(fields, "apiVersion")
	j.tidy(fields)
	encoded, err = json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

func (j *journal) tidy(fields map[string]any) {
	if metadata, is := fields["metadata"].(map[string]any); is {
		for _, name := range []string{"resourceVersion", "uid"} {
			value, is := metadata[name].(string)
			if !is || value == "" {
				continue
			}
			if _, known := j.seen[name+value]; !known {
				j.seen[name+value] = fmt.Sprintf("#%d", len(j.seen)+1)
			}
			metadata[name] = j.seen[name+value]
		}
		if _, set := metadata["creationTimestamp"]; set {
			metadata["creationTimestamp"] = "set"
		}
		if name, is := metadata["name"].(string); is && metadata["generateName"] != nil {
			metadata["name"] = fmt.Sprintf("%d characters", len(name))
		}
		if !j.managers {
			delete(metadata, "managedFields")
		}
		if managers, is := metadata["managedFields"].([]any); is {
			for _, m := range managers {
				delete(m.(map[string]any), "time")
			}
		}
	}
	if items, is := fields["items"].([]any); is {
		delete(fields, "metadata")
		for _, item := range items {
			j.tidy(item.(map[string]any))
		}
	}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": name}}, Data: data}
}

var requests = []struct {
	name string
	send func(context.Context, api, string, *journal)
}{
	{"create", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().ConfigMaps(ns)
		created, err := c.Create(ctx, configMap(ns, "a", map[string]string{"k": "v"}), metav1.CreateOptions{FieldManager: "one"})
		j.record("create", created, err)
		created, err = c.Create(ctx, configMap(ns, "a", nil), metav1.CreateOptions{FieldManager: "one"})
		j.record("create again", created, err)
		versioned := configMap(ns, "b", nil)
		versioned.ResourceVersion = "1"
		created, err = c.Create(ctx, versioned, metav1.CreateOptions{FieldManager: "one"})
		j.record("create with a version", created, err)
		found, err := c.Get(ctx, "a", metav1.GetOptions{})
		j.record("get", found, err)
		found, err = c.Get(ctx, "missing", metav1.GetOptions{})
		j.record("get a missing object", found, err)
		generated := configMap(ns, "", nil)
		generated.GenerateName = strings.Repeat("long-", 12)
		created, err = c.Create(ctx, generated, metav1.CreateOptions{FieldManager: "one"})
		j.record("create with a generated name", created, err)
	}},
	{"secret", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().Secrets(ns)
		created, err := c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"k": "v", "both": "text"}, Data: map[string][]byte{"both": []byte("data")},
		}, metav1.CreateOptions{FieldManager: "one"})
		j.record("create", created, err)
	}},
	{"update", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().ConfigMaps(ns)
		first, err := c.Create(ctx, configMap(ns, "a", map[string]string{"k": "v"}), metav1.CreateOptions{FieldManager: "one"})
		j.record("create", first, err)
		same, err := c.Update(ctx, first, metav1.UpdateOptions{FieldManager: "one"})
		j.record("update that changes nothing", same, err)
		changed := first.DeepCopy()
		changed.Data["k"] = "w"
		second, err := c.Update(ctx, changed, metav1.UpdateOptions{FieldManager: "two"})
		j.record("update", second, err)
		stale, err := c.Update(ctx, first, metav1.UpdateOptions{FieldManager: "one"})
		j.record("update with an old version", stale, err)
		unconditional := configMap(ns, "a", map[string]string{"k": "x"})
		updated, err := c.Update(ctx, unconditional, metav1.UpdateOptions{FieldManager: "one"})
		j.record("update without a version", updated, err)
		missing, err := c.Update(ctx, configMap(ns, "missing", nil), metav1.UpdateOptions{FieldManager: "one"})
		j.record("update a missing object", missing, err)
	}},
	{"patch", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().ConfigMaps(ns)
		_, err := c.Create(ctx, configMap(ns, "a", map[string]string{"k": "v"}), metav1.CreateOptions{FieldManager: "one"})
		j.record("create", nil, err)
		for _, patch := range []struct {
			kind types.PatchType
			body string
		}{
			{types.MergePatchType, `{"data":{"m":"1"}}`},
			{types.MergePatchType, `{"data":{"m":"1"}}`},
			{types.StrategicMergePatchType, `{"metadata":{"labels":{"l":"1"}}}`},
			{types.JSONPatchType, `[{"op":"remove","path":"/data/k"}]`},
		} {
			patched, err := c.Patch(ctx, "a", patch.kind, []byte(patch.body), metav1.PatchOptions{FieldManager: "two"})
			j.record("patch", patched, err)
		}
		old, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"},"data":{"n":"1"}}`), metav1.PatchOptions{FieldManager: "two"})
		j.record("patch with an old version", old, err)
		found, err := c.Get(ctx, "a", metav1.GetOptions{})
		j.record("get", found, err)
		found, err = c.Patch(ctx, "a", types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"n":"1"}}`, found.ResourceVersion)), metav1.PatchOptions{FieldManager: "two"})
		j.record("patch with the version", found, err)
		none, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"a"}}`), metav1.PatchOptions{FieldManager: "two"}, "status")
		j.record("patch the status of a kind that has none", none, err)
		missing, err := c.Patch(ctx, "missing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{FieldManager: "two"})
		j.record("patch a missing object", missing, err)
	}},
	{"apply", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().ConfigMaps(ns)
		wanted := func(data map[string]string) *corev1ac.ConfigMapApplyConfiguration {
			return corev1ac.ConfigMap("a", ns).WithData(data)
		}
		apply := func(request, manager string, force bool, data map[string]string) {
			applied, err := c.Apply(ctx, wanted(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
			j.record(request, applied, err)
		}
		apply("apply", "one", false, map[string]string{"k": "v", "l": "v"})
		apply("apply the same", "one", false, map[string]string{"k": "v", "l": "v"})
		apply("apply another's field", "two", false, map[string]string{"k": "w"})
		apply("apply another's field by force", "two", true, map[string]string{"k": "w"})
		apply("apply less", "one", false, map[string]string{})
		apply("apply an equal value", "three", false, map[string]string{"k": "w"})
	}},
	{"delete", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().ConfigMaps(ns)
		_, err := c.Create(ctx, configMap(ns, "a", nil), metav1.CreateOptions{FieldManager: "one"})
		j.record("create", nil, err)
		j.record("delete", nil, c.Delete(ctx, "a", metav1.DeleteOptions{}))
		j.record("delete again", nil, c.Delete(ctx, "a", metav1.DeleteOptions{}))
		found, err := c.Get(ctx, "a", metav1.GetOptions{})
		j.record("get", found, err)
		created, err := c.Create(ctx, configMap(ns, "a", nil), metav1.CreateOptions{FieldManager: "one"})
		j.record("create again", created, err)
	}},
	{"list", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.CoreV1().Secrets(ns)
		for _, name := range []string{"c", "a", "b"} {
			_, err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": name}}}, metav1.CreateOptions{FieldManager: "one"})
			j.record("create", nil, err)
		}
		all, err := c.List(ctx, metav1.ListOptions{})
		j.record("list", all, err)
		some, err := c.List(ctx, metav1.ListOptions{LabelSelector: "of in (a,c)"})
		j.record("list by label", some, err)
		none, err := c.List(ctx, metav1.ListOptions{LabelSelector: "of=d"})
		j.record("list nothing", none, err)
	}},
	{"generation", func(ctx context.Context, a api, ns string, j *journal) {
		c := a.kube.RbacV1().Roles(ns)
		role, err := c.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{FieldManager: "one"})
		j.record("create", role, err)
	}},
	{"status", func(ctx context.Context, a api, _ string, j *journal) {
		c := a.operator.OperatorV1().KubeAPIServers()
		wanted := &operatorv1.KubeAPIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		wanted.Spec.ManagementState = operatorv1.Managed
		wanted.Spec.LogLevel, wanted.Spec.OperatorLogLevel = operatorv1.Normal, operatorv1.Normal
		wanted.Status.LatestAvailableRevision = 9
		created, err := c.Create(ctx, wanted, metav1.CreateOptions{FieldManager: "one"})
		j.record("create with a status", created, err)
		changed := created.DeepCopy()
		changed.Spec.ObservedConfig = runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{"a": "b"}}}
		changed.Status.LatestAvailableRevision = 3
		updated, err := c.Update(ctx, changed, metav1.UpdateOptions{FieldManager: "one"})
		j.record("update", updated, err)
		j.lines = append(j.lines, "observed: "+string(updated.Spec.ObservedConfig.Raw))
		changed = updated.DeepCopy()
		changed.Spec.ManagementState = operatorv1.Removed
		changed.Status.LatestAvailableRevision = 3
		updated, err = c.UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: "two"})
		j.record("update the status", updated, err)
		apply := func(request, manager, condition, status string) {
			body := fmt.Sprintf(`{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer","metadata":{"name":"cluster"},"status":{"conditions":[{"type":%q,"status":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, condition, status)
			force := true
			applied, err := c.Patch(ctx, "cluster", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: manager, Force: &force}, "status")
			j.record(request, applied, err)
		}
		apply("apply a condition", "three", "A", "True")
		apply("apply another's", "four", "B", "False")
		apply("apply the same", "four", "B", "False")
		apply("apply another type", "four", "C", "False")
		patched, err := c.Patch(ctx, "cluster", types.JSONPatchType, []byte(`[{"op":"replace","path":"/status/latestAvailableRevision","value":4}]`), metav1.PatchOptions{FieldManager: "two"}, "status")
		j.record("patch the status", patched, err)
	}},
}

// The API in memory answers like an API server (R-REN-5).
func TestLikeAPIServer(t *testing.T) {
	config := apiserver.Start(t, apiserver.Options{CRDs: []string{"kubeapiservers.operator.openshift.io"}}).Config(t, "test", "system:masters")
	real := api{kubernetes.NewForConfigOrDie(config), operatorclient.NewForConfigOrDie(config)}
	s, err := store.New()
	if err != nil {
		t.Fatal(err)
	}
	session := s.Session("test", store.Pattern{Resource: "configmaps", Namespace: "*", Name: "*"}, store.Pattern{Resource: "secrets", Namespace: "*", Name: "*"},
		store.Pattern{Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "*", Name: "*"},
		store.Pattern{Group: "operator.openshift.io", Resource: "kubeapiservers", Name: "*"})
	memory := api{session.Kube(), session.Operator()}
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			namespace := "of-" + r.name
			if _, err := real.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			managers := r.name != "status"
			want, got := journal{managers: managers, seen: map[string]string{}}, journal{managers: managers, seen: map[string]string{}}
			r.send(t.Context(), real, namespace, &want)
			r.send(t.Context(), memory, namespace, &got)
			if diff := cmp.Diff(want.lines, got.lines); diff != "" {
				t.Errorf("answers differ (-API server +memory):\n%s", diff)
			}
		})
	}
}
