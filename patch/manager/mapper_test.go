package manager

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// While the manager is made nobody is asked for the kinds of the modules, and after that an API server that has no answer does no harm.
func TestMapper(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	p := &process{modules: []Module{&sample{}}}
	mapper, err := p.mapper(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []bool{false, true} {
		p.made.Store(made)
		for _, o := range p.objects() {
			mapping, err := mapper.RESTMapping(o.GroupVersionKind.GroupKind(), o.Version)
			if err != nil {
				t.Errorf("made=%t: %v", made, err)
				continue
			}
			if namespaced := mapping.Scope.Name() == "namespace"; mapping.GroupVersionKind != o.GroupVersionKind || namespaced != (o.Namespace != "") {
				t.Errorf("made=%t: %s is %s of scope %s", made, o.Kind, mapping.GroupVersionKind, mapping.Scope.Name())
			}
		}
		if got := asked.Load() > 0; got != made {
			t.Errorf("made=%t: the API server was asked %d times", made, asked.Load())
		}
	}
	if _, err := mapper.RESTMapping(optional.GroupVersionKind.GroupKind(), "v2"); err == nil {
		t.Error("a version that nobody knows has a mapping")
	}
}
