// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"crypto/x509"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	parallelCalls = 32
	answerValid   = time.Minute // how long an answer or a failure is used
)

type answer struct {
	chain   []*x509.Certificate
	err     error
	at      time.Time
	calling bool // the call has not ended
}

// kubelets calls each node's kubelet once at a time, in the background, so that a slow one delays only its own
// requests.
type kubelets struct {
	node     func(ctx context.Context, name string) (*corev1.Node, error)
	call     func(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error)
	answered func() // called after every call

	calls   sync.WaitGroup
	mu      sync.Mutex
	answers map[string]answer
	slots   chan struct{}
}

// lookUp returns the last answer of the kubelet. Without a valid one it starts a call and does not wait.
func (k *kubelets) lookUp(ctx context.Context, name string) answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.answers, func(_ string, a answer) bool { return !a.calling && time.Since(a.at) >= answerValid })
	if a, ok := k.answers[name]; ok {
		return a
	}
	if k.answers == nil {
		k.answers, k.slots = map[string]answer{}, make(chan struct{}, parallelCalls)
	}
	k.answers[name] = answer{calling: true}
	k.calls.Go(func() {
		k.slots <- struct{}{}
		defer func() { <-k.slots }()
		var a answer
		node, err := k.node(ctx, name)
		if err == nil {
			a.chain, err = k.call(ctx, node)
		}
		a.err, a.at = err, time.Now()
		k.mu.Lock()
		k.answers[name] = a
		k.mu.Unlock()
		k.answered()
	})
	return k.answers[name]
}
