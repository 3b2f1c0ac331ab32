// SPDX-License-Identifier: Apache-2.0

package rotate_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"
)

const (
	manifest    = "etc/kubernetes/manifests/etcd-pod.yaml"
	certificate = "etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-client/tls.crt"
	resource    = "etc/kubernetes/static-pod-resources/etcd-pod-2/etcd-pod.yaml"
)

func rendered(pod, crt string) []files.File {
	return []files.File{
		{Path: manifest, Mode: 0o600, Content: []byte(pod)},
		{Path: resource, Mode: 0o600, Content: []byte(pod)},
		{Path: certificate, Mode: 0o600, Content: []byte(crt)},
	}
}

func TestWriteChanged(t *testing.T) {
	root := t.TempDir()
	writeChanged := func(list []files.File) []string {
		t.Helper()
		written, err := rotate.WriteChanged(root, list)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	want := []string{certificate, resource, manifest}
	if diff := cmp.Diff(want, writeChanged(rendered("pod", "crt"))); diff != "" {
		t.Errorf("first time (-want +got):\n%s", diff)
	}
	if written := writeChanged(rendered("pod", "crt")); len(written) > 0 {
		t.Errorf("written again: %v", written)
	}
	if diff := cmp.Diff([]string{certificate}, writeChanged(rendered("pod", "new"))); diff != "" {
		t.Errorf("a new certificate (-want +got):\n%s", diff)
	}
	if err := os.Chmod(filepath.Join(root, certificate), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{certificate}, writeChanged(rendered("pod", "new"))); diff != "" {
		t.Errorf("another mode (-want +got):\n%s", diff)
	}
	for _, name := range want {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		if folder, err := os.Stat(filepath.Dir(filepath.Join(root, name))); err != nil || folder.Mode().Perm() != 0o700 {
			t.Errorf("folder of %s: %v, %v", name, folder.Mode(), err)
		}
	}
}

// Files after a failed one are not written. Another run completes the work and replaces partial files of a crash.
func TestWriteChangedResumes(t *testing.T) {
	root := t.TempDir()
	blocked := filepath.Join(root, filepath.Dir(resource))
	if err := errors.Join(os.MkdirAll(filepath.Dir(blocked), 0o700), os.WriteFile(blocked, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	written, err := rotate.WriteChanged(root, rendered("pod", "crt"))
	if err == nil {
		t.Fatal("no error, although a file is in the place of a folder")
	}
	if diff := cmp.Diff([]string{certificate}, written); diff != "" {
		t.Errorf("written before the error (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(root, manifest)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the manifest was written before the files that it mounts: %v", err)
	}
	partial := filepath.Join(root, "etc/kubernetes/manifests/.etcd-pod.yaml.partial")
	if err := errors.Join(os.Remove(blocked), os.MkdirAll(filepath.Dir(partial), 0o700), os.WriteFile(partial, []byte("half of a po"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate.WriteChanged(root, rendered("pod", "crt")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(partial))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(manifest) {
		t.Errorf("in the folder of manifests are %v", entries)
	}
	// A file that was there before, which somebody may have open, gets nothing of a private key.
	leaked, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rotate.WriteChanged(root, rendered("another pod", "crt")); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(leaked); err != nil || len(content) > 0 {
		t.Errorf("the file that was there before has %q, %v", content, err)
	}
	if err := leaked.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate.WriteChanged(filepath.Join(root, "none"), rendered("pod", "crt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that does not exist: %v", err)
	}
}

func secret(name, value string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Annotations: annotations},
		Data:       map[string][]byte{"k": []byte(value)},
	}
}

// An object that was read from its manifest equals the typed one, without fields that a server owns.
func TestChanges(t *testing.T) {
	same := secret("same", "v", nil)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(same)
	if err != nil {
		t.Fatal(err)
	}
	served := same.DeepCopy()
	served.ResourceVersion, served.UID = "7", "u"
	got, err := rotate.Changes(
		[]runtime.Object{&unstructured.Unstructured{Object: content}, secret("changed", "v", nil), secret("gone", "v", nil)},
		[]runtime.Object{served, secret("changed", "w", nil), secret("added", "v", nil)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret kube-system/added", "Secret kube-system/changed"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func validity(from, until string) map[string]string {
	return map[string]string{"auth.openshift.io/certificate-not-before": from, "auth.openshift.io/certificate-not-after": until}
}

func TestNext(t *testing.T) {
	signer := validity("2026-01-01T00:00:00Z", "2026-01-11T00:00:00Z")
	signer["certificates.openshift.io/refresh-period"] = "144h0m0s"
	managed := func(name string, annotations map[string]string) *corev1.Secret {
		s := secret(name, "", annotations)
		s.Labels = map[string]string{"auth.openshift.io/managed-certificate-type": "target"}
		return s
	}
	ofRevision := managed("signer-1", signer)
	ofRevision.Labels["operator.openshift.io/controller-instance-name"] = "etcd-RevisionController"
	due := rotate.NextRenewals([]runtime.Object{
		managed("signer", signer), secret("given", "", signer), ofRevision,
		managed("late", validity("2026-01-01T00:00:00Z", "2026-04-11T00:00:00Z")),
		managed("none", nil),
		managed("damaged", validity("2026-01-01T00:00:00Z", "soon")),
		managed("early", validity("2026-01-01T00:00:00Z", "2026-01-11T00:00:00Z")),
		managed("future", validity("2026-01-02T00:00:00Z", "2026-06-11T00:00:00Z")),
	}, time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
	day := func(month time.Month, day int) time.Time { return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC) }
	want := []rotate.Renewal{
		{Object: "kube-system/future", At: day(1, 1).Add(time.Hour), End: day(6, 11)},
		{Object: "kube-system/signer", At: day(1, 7), End: day(1, 11)},
		{Object: "kube-system/early", At: day(1, 9), End: day(1, 11)},
		{Object: "kube-system/late", At: day(3, 22), End: day(4, 11)},
	}
	if diff := cmp.Diff(want, due); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
}
