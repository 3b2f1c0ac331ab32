package outside

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// parallelCalls is how many kubelets are called at a time.
	parallelCalls = 32
	// presentedFor is how long it counts what a kubelet presented, and for how long one that did not answer is not called again.
	presentedFor = time.Minute
)

// presented is what a kubelet presented, or why it did not.
type presented struct {
	chain []*x509.Certificate
	err   error
	at    time.Time
	// calling says that the call has not ended yet.
	calling bool
}

// kubelets calls the kubelets of nodes in the background, so that nobody waits for a kubelet but who needs its certificate: one call
// per node at a time, a bounded number of them at once, and those in the order in which they were asked for.
type kubelets struct {
	// node reads the node; it is read right before the call, because its address may have changed.
	node func(ctx context.Context, name string) (*corev1.Node, error)
	// call asks its kubelet.
	call func(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error)
	now  func() time.Time
	// answered is told whenever a call has ended.
	answered func()

	calls sync.WaitGroup
	mu    sync.Mutex
	queue []string
	busy  int
	known map[string]presented
}

// ask is what the node's kubelet presented lately. When that is not known, the kubelet is called, and the answer says so.
func (k *kubelets) ask(ctx context.Context, name string) presented {
	k.mu.Lock()
	defer k.mu.Unlock()
	if answer, ok := k.known[name]; ok && (answer.calling || k.now().Sub(answer.at) < presentedFor) {
		return answer
	}
	if k.known == nil {
		k.known = map[string]presented{}
	}
	k.known[name] = presented{calling: true}
	k.queue = append(k.queue, name)
	if k.busy < parallelCalls {
		k.busy++
		k.calls.Go(func() { k.work(ctx) })
	}
	return k.known[name]
}

// work makes calls until the queue is empty.
func (k *kubelets) work(ctx context.Context) {
	for {
		name, ok := k.next()
		if !ok {
			return
		}
		answer := presented{}
		node, err := k.node(ctx, name)
		if err == nil {
			answer.chain, err = k.call(ctx, node)
		}
		answer.err, answer.at = err, k.now()
		k.mu.Lock()
		k.known[name] = answer
		k.mu.Unlock()
		k.answered()
	}
}

func (k *kubelets) next() (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		k.busy--
		return "", false
	}
	name := k.queue[0]
	k.queue = k.queue[1:]
	return name, true
}

// forget drops what is too old to count, and returns how many calls have not ended.
func (k *kubelets) forget() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	calling := 0
	for name, answer := range k.known {
		switch {
		case answer.calling:
			calling++
		case k.now().Sub(answer.at) >= presentedFor:
			delete(k.known, name)
		}
	}
	return calling
}

// wait returns when the calls have ended, which those of a context that is over do at once.
func (k *kubelets) wait() { k.calls.Wait() }
