// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package kubeapiserver

import (
	goruntime "runtime"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
)

// Two runs with the same clock and random numbers give the same bytes (U-REN-6).
func TestDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys twice")
	}
	// On several processors the order of random numbers is not fixed.
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	var runs []string
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 7)
			s := settings(inputs.Kubernetes)
			s.Cluster.APIServer.Spec.Encryption.Type = configv1.EncryptionTypeAESCBC
			st := fixture.Store(t, fixture.Objects(s, others(t)...)...)
			if _, err := fixture.Run(st, Steps(s)...); err != nil {
				t.Fatal(err)
			}
			objects, err := st.Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				metadata := object.(metav1.Object)
				// library-go copies in random order, which changes the versions.
				metadata.SetResourceVersion("")
				metadata.SetUID("")
			}
			text, err := yaml.Marshal(objects)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, string(text))
		})
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}
