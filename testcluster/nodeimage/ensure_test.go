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
	g := fixture{engine: e, asked: &atomic.Int64{}, archive: filepath.Join(t.TempDir(), "image.tar")}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	// Engines accept any certificate of a registry on their own machine.
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		store.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	g.recipe = recipe{version: "v0.0.0", key: "key", from: host + "/kindest/node", folder: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Write(g.archive, images.Image{Name: "docker.io/" + g.recipe.built(), Files: map[string]string{"node": self}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.forget(t) })
	docker, err := exec.LookPath("docker")
	if err != nil {
		t.Fatal(err)
	}
	only := t.TempDir()
	if err := os.Symlink(docker, filepath.Join(only, "docker")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", only) // nothing is built: there is no debootstrap
	return g
}

func (g fixture) forget(t *testing.T) {
	t.Helper()
	for _, image := range []string{g.recipe.pulled(), g.recipe.built()} {
		there, err := g.engine.HasImage(context.WithoutCancel(t.Context()), image)
		if err != nil {
			t.Error(err)
		}
		if there {
			g.docker(t, "rmi", image)
		}
	}
}

func (g fixture) docker(t *testing.T, args ...string) {
	t.Helper()
	if _, err := g.engine.Output(context.WithoutCancel(t.Context()), args...); err != nil {
		t.Fatal(err)
	}
}

func TestEnsure(t *testing.T) {
	g := newFixture(t)
	load := func() {
		g.docker(t, "load", "--quiet", "--input", g.archive)
	}
	push := func() {
		load()
		g.docker(t, "tag", g.recipe.built(), g.recipe.pulled())
		g.docker(t, "push", "--quiet", g.recipe.pulled())
		g.forget(t)
	}
	for _, test := range []struct {
		name         string
		prepare      func()
		want         string
		asks         bool
		wantProgress string
	}{
		{name: "kind's is loaded", prepare: func() { load(); g.docker(t, "tag", g.recipe.built(), g.recipe.pulled()) }, want: g.recipe.pulled()},
		{name: "built one is loaded", prepare: load, want: g.recipe.built()},
		{name: "kind's can be pulled", prepare: push, want: g.recipe.pulled(), asks: true, wantProgress: "Pulling " + g.recipe.pulled()},
		{
			name: "built one was kept", want: g.recipe.built(), wantProgress: "Loading the nodes' image from " + g.recipe.archive(),
			prepare: func() {
				if err := os.Link(g.archive, g.recipe.archive()); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g.forget(t)
			test.prepare()
			g.asked.Store(0)
			var said bytes.Buffer
			got, err := g.recipe.ensure(t.Context(), g.engine, &said)
			if err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if there, err := g.engine.HasImage(t.Context(), got); err != nil || !there {
				t.Errorf("%s is not in the engine: %v", got, err)
			}
			if asked := g.asked.Load() > 0; asked != test.asks || strings.TrimSpace(said.String()) != test.wantProgress {
				t.Errorf("the registry was asked: %t; said: %q", asked, said.String())
			}
		})
	}
}

// An image that no registry has is built, and the error contains what is missing for that.
func TestEnsureBuildsWhatCannotBePulled(t *testing.T) {
	g := newFixture(t)
	_, err := g.recipe.ensure(t.Context(), g.engine, io.Discard)
	if !errors.Is(err, ErrImage) || !strings.Contains(err.Error(), g.recipe.pulled()+" is neither loaded nor can it be pulled") {
		t.Error(err)
	}
	if g.asked.Load() == 0 {
		t.Error("no registry was asked")
	}
}
