// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/images"
)

type fixture struct {
	engine  engine.Engine
	asked   *atomic.Int64
	archive string
	recipe  recipe
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED: which image of a node is taken: %v", err)
	}
	f := fixture{engine: e, asked: &atomic.Int64{}, archive: filepath.Join(t.TempDir(), "image.tar")}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	// Engines accept any certificate of a registry on their own machine.
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		store.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	f.recipe = recipe{version: "v0.0.0", key: "key", from: host + "/kindest/node", folder: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Write(f.archive, images.Image{Name: "docker.io/" + f.recipe.built(), Files: map[string]string{"node": self}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.forget(t) })
	docker, err := exec.LookPath("docker")
	if err != nil {
		t.Fatal(err)
	}
	only := t.TempDir()
	if err := os.Symlink(docker, filepath.Join(only, "docker")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", only) // nothing is built: there is no debootstrap
	return f
}

func (f fixture) forget(t *testing.T) {
	t.Helper()
	for _, image := range []string{f.recipe.pulled(), f.recipe.built()} {
		there, err := f.engine.HasImage(context.WithoutCancel(t.Context()), image)
		if err != nil {
			t.Error(err)
		}
		if there {
			f.docker(t, "rmi", image)
		}
	}
}

func (f fixture) docker(t *testing.T, args ...string) {
	t.Helper()
	if _, err := f.engine.Output(context.WithoutCancel(t.Context()), args...); err != nil {
		t.Fatal(err)
	}
}

func TestEnsure(t *testing.T) {
	f := newFixture(t)
	load := func() {
		f.docker(t, "load", "--quiet", "--input", f.archive)
	}
	push := func() {
		load()
		f.docker(t, "tag", f.recipe.built(), f.recipe.pulled())
		f.docker(t, "push", "--quiet", f.recipe.pulled())
		f.forget(t)
	}
	for _, test := range []struct {
		name         string
		prepare      func()
		want         string
		asks         bool
		wantProgress string
	}{
		{name: "kind's is loaded", prepare: func() { load(); f.docker(t, "tag", f.recipe.built(), f.recipe.pulled()) }, want: f.recipe.pulled()},
		{name: "built one is loaded", prepare: load, want: f.recipe.built()},
		{name: "kind's can be pulled", prepare: push, want: f.recipe.pulled(), asks: true, wantProgress: "Pulling " + f.recipe.pulled()},
		{
			name: "built one was kept", want: f.recipe.built(), wantProgress: "Loading the nodes' image from " + f.recipe.archive(),
			prepare: func() {
				if err := os.Link(f.archive, f.recipe.archive()); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.forget(t)
			test.prepare()
			f.asked.Store(0)
			var said bytes.Buffer
			got, err := f.recipe.ensure(t.Context(), f.engine, &said)
			if err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if there, err := f.engine.HasImage(t.Context(), got); err != nil || !there {
				t.Errorf("%s is not in the engine: %v", got, err)
			}
			if asked := f.asked.Load() > 0; asked != test.asks || strings.TrimSpace(said.String()) != test.wantProgress {
				t.Errorf("the registry was asked: %t; said: %q", asked, said.String())
			}
		})
	}
}

// An image that no registry has is built, and the error contains what is missing for that.
func TestEnsureBuildsWhatCannotBePulled(t *testing.T) {
	f := newFixture(t)
	_, err := f.recipe.ensure(t.Context(), f.engine, io.Discard)
	if !errors.Is(err, ErrImage) || !strings.Contains(err.Error(), f.recipe.pulled()+" is neither loaded nor can it be pulled") {
		t.Error(err)
	}
	if f.asked.Load() == 0 {
		t.Error("no registry was asked")
	}
}
