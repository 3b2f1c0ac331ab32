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

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rendertest"
)

// TestDeterministic runs all steps twice with the same clock and the same randomness: the same bytes come out, keys and certificates
// included (U-REN-6).
func TestDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys twice")
	}
	// On several processors it is chance which key gets which random numbers.
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	var runs []string
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 7)
			s := settings(inputs.Kubernetes)
			s.Cluster.APIServer.Spec.Encryption.Type = configv1.EncryptionTypeAESCBC
			st := rendertest.Store(t, rendertest.Objects(s, others(t)...)...)
			if _, err := rendertest.Run(st, Steps(s)...); err != nil {
				t.Fatal(err)
			}
			objects, err := st.Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				metadata := object.(metav1.Object)
				// library-go copies in a random order, and these count.
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
