// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

type mapper struct {
	meta.RESTMapper
	err error
}

func (m mapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{}, m.err
}

func TestAnyServed(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "sample.example.com", Version: "v1", Kind: "Optional"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"served":     {nil, true},
		"not served": {&meta.NoKindMatchError{GroupKind: kind.GroupKind()}, false},
		"no answer":  {errors.New("connection refused"), false},
	} {
		if got := anyServed(mapper{err: test.err}, []schema.GroupVersionKind{kind}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestStopwatch(t *testing.T) {
	started := time.Now()
	var changed stopwatch
	for i, step := range []struct {
		after time.Duration
		other bool
		want  time.Duration
	}{
		{0, false, 0}, {1, true, 0}, {2, true, 1}, {3, true, 2}, {4, false, 0}, {5, true, 0}, {7, true, 2},
	} {
		if got := changed.since(step.other, started.Add(step.after)); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

type fakeManager struct {
	ctrl.Manager
	live fakeCache
}

func (fakeManager) GetRESTMapper() meta.RESTMapper { return mapper{} }

func (f fakeManager) GetAPIReader() client.Reader { return f.live }

type fakeCache struct {
	cache.Cache
	mode func() configv1.TopologyMode // "" for an API server that does not answer
}

func (fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, nil
}

func (fakeCache) WaitForCacheSync(context.Context) bool { return true }

func (c fakeCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.mode() == "" {
		return errors.New("connection refused")
	}
	if _, ok := into.(*unstructured.Unstructured); !ok {
		return nil
	}
	return unstructured.SetNestedMap(into.(*unstructured.Unstructured).Object, map[string]any{
		"controlPlaneTopology": string(c.mode()), "infrastructureTopology": "SingleReplica", "platform": "None",
	}, "status")
}

// The process ends when other durations have been required for 2 s and the API server answers.
func TestDurationsChange(t *testing.T) {
	const (
		ha   = configv1.HighlyAvailableTopologyMode
		sr   = configv1.SingleReplicaTopologyMode
		dual = configv1.DualReplicaTopologyMode
	)
	type reading struct {
		from time.Duration
		mode configv1.TopologyMode
	}
	for name, test := range map[string]struct {
		readings   []reading
		noElection bool
		outage     time.Duration // of the API server, from the beginning; the cache keeps its state
		want       time.Duration // 0 for never
	}{
		"the same":                     {readings: []reading{{0, ha}}},
		"the same durations":           {readings: []reading{{0, ha}, {time.Second, dual}}},
		"another":                      {readings: []reading{{0, ha}, {time.Second, sr}}, want: 3 * time.Second},
		"another from the beginning":   {readings: []reading{{0, sr}}, want: 2 * time.Second},
		"another for less than 2 s":    {readings: []reading{{0, sr}, {2 * time.Second, ha}}},
		"another with an interruption": {readings: []reading{{0, sr}, {time.Second, dual}, {3 * time.Second / 2, sr}}, want: 7 * time.Second / 2},
		"another, without election":    {readings: []reading{{0, sr}}, noElection: true},
		"another, during an outage":    {readings: []reading{{0, sr}}, outage: 10 * time.Second, want: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				infrastructure := fakeCache{mode: func() (mode configv1.TopologyMode) {
					for _, r := range test.readings {
						if time.Since(started) >= r.from {
							mode = r.mode
						}
					}
					return mode
				}}
				live := fakeCache{mode: func() configv1.TopologyMode {
					if time.Since(started) < test.outage {
						return ""
					}
					return sr
				}}
				p := &process{
					options: Options{LeaderElect: !test.noElection}, class: topology.LeaderElection(ha), topology: &controller.Topology{},
					manager: fakeManager{live: live}, caches: controller.Caches{controller.Infrastructure: infrastructure}, synced: make(chan struct{}),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := p.syncAndFollow(ctx)
				var want error
				if test.want > 0 {
					want = ErrRestart
				}
				if after := time.Since(started); !errors.Is(err, want) || want != nil && after != test.want {
					t.Errorf("it ends after %v: %v; want %v after %v", after, err, want, test.want)
				}
			})
		})
	}
}
