// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// TestLimit sends with clients of one configuration and of its copies; together they stay below the limit.
func TestLimit(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: 1000, Burst: 1000}
	limit(config)
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate.UserName = "another"
	var group sync.WaitGroup
	began := time.Now()
	for _, config := range []*rest.Config{config, rest.CopyConfig(config), impersonating} {
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		for range requestsPerSecond {
			group.Go(func() { _, _ = set.CoreV1().Pods("x").Get(t.Context(), "x", metav1.GetOptions{}) })
		}
	}
	group.Wait()
	// The burst is not delayed.
	want := time.Duration(3*requestsPerSecond-requestsAtOnce) * time.Second / requestsPerSecond
	if took := time.Since(began); took < want-want/10 {
		t.Errorf("%d requests of three clients took %s, want about %s", len(times), took, want)
	}
}

// TestLimitEndsInTime: a request that would be sent too late fails when its context ends, not before.
func TestLimitEndsInTime(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	// The limit of one request in 1000 s is used up.
	limiter := flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	limiter.Accept()
	sender := &http.Client{Transport: &limited{next: http.DefaultTransport, limiter: limiter}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := sender.Do(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		t.Errorf("the request ended with %v, its context with %v", err, ctx.Err())
	}
}
