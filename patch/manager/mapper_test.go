package manager

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// counting is a RESTMapper that has an answer, and counts how often it gives it.
type counting struct {
	meta.RESTMapper
	asked int
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeRoot}, nil
}

// What the API server has said of a kind of the modules is not asked for again; of any other it is.
func TestMapperRemembers(t *testing.T) {
	var made atomic.Bool
	made.Store(true)
	served := &counting{}
	mapper := &knownKinds{RESTMapper: served, made: &made, scopes: map[schema.GroupVersionKind]meta.RESTScope{optional.GroupVersionKind: meta.RESTScopeRoot}}
	ask := func(kind schema.GroupVersionKind) {
		t.Helper()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil || mapping.GroupVersionKind != kind {
			t.Fatalf("%v, %v; want %v", mapping, err, kind)
		}
	}
	for range 3 {
		ask(optional.GroupVersionKind)
	}
	if served.asked != 1 {
		t.Errorf("the API server was asked %d times for a kind of a module", served.asked)
	}
	for range 3 {
		ask(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"})
	}
	if served.asked != 1+3 {
		t.Errorf("the API server was asked %d times for a kind of nobody's", served.asked-1)
	}
}
