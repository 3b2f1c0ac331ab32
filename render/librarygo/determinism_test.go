// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package librarygo_test

import (
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

const namespace = "openshift-kube-apiserver"

func steps(validity time.Duration) []loop.Step {
	secret := func(name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	return []loop.Step{
		loop.Once(librarygo.CertRotation("certificates", librarygo.Certificate{
			Signer: secret("signer"), SignerValidity: 2 * validity,
			Bundle: secret("ca"),
			Target: secret("client"), Validity: validity,
			Client: &user.DefaultInfo{Name: "system:admin", Groups: []string{"system:masters"}},
		})),
		librarygo.Encryption(namespace, librarygo.KubeAPIServer, schema.GroupResource{Resource: "secrets"}),
		loop.Once(librarygo.ResourceSync("copies", librarygo.KubeAPIServer, librarygo.SyncRule{
			Secret: true, To: secret("encryption-config"), From: librarygo.EncryptionConfig(namespace),
		})),
		loop.Once(librarygo.Revision("revision", librarygo.KubeAPIServer, namespace,
			[]staticpods.Resource{{Name: "ca"}}, []staticpods.Resource{{Name: "client"}, {Name: "encryption-config", Optional: true}})),
		loop.Once(librarygo.NodeStatus("node status", librarygo.KubeAPIServer, "node-0")),
	}
}

func apiServer(encryption configv1.EncryptionType) runtime.Object {
	return &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: configv1.APIServerSpec{Encryption: configv1.APIServerEncryption{Type: encryption}}}
}

func render(t *testing.T, s *store.Store, validity time.Duration) []runtime.Object {
	t.Helper()
	if err := loop.Run(t.Context(), s, steps(validity), loop.Options{Timeout: time.Minute, Report: func(r loop.Report) { t.Logf("%s %d: %v", r.Loop, r.Round, r.Wrote) }}); err != nil {
		t.Fatal(err)
	}
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// The same clock and random numbers give the same bytes.
func TestDeterministic(t *testing.T) {
	var runs [2][]runtime.Object
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			s, err := store.New(apiServer(configv1.EncryptionTypeAESCBC), librarygo.KubeAPIServer.Resource())
			if err != nil {
				t.Fatal(err)
			}
			runs[i] = render(t, s, time.Hour)
		})
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs differ (-first +second):\n%s", diff)
	}
	names := map[string]bool{}
	for _, object := range runs[0] {
		if secret, is := object.(*corev1.Secret); is {
			names[secret.Name] = true
		}
	}
	if !names["encryption-config-1"] {
		t.Errorf("no encryption-config-1 among %v", names)
	}
}
