package outside

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errNoAnswer = errors.New("no answer")

// switchboard has the calls of a test wait until it lets them go.
type switchboard struct {
	kubelets
	mu            sync.Mutex
	calls         []string
	now           int
	most          int
	let, answered chan struct{}
	time          time.Time
	atOnceForNode bool
	open          map[string]bool
}

func newSwitchboard() *switchboard {
	s := &switchboard{let: make(chan struct{}), answered: make(chan struct{}, 1000), open: map[string]bool{}, time: time.Unix(1e9, 0)}
	s.kubelets = kubelets{
		node: func(_ context.Context, name string) (*corev1.Node, error) {
			if name == "gone" {
				return nil, errNoAnswer
			}
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		},
		call: s.take,
		now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.time
		},
		answered: func() { s.answered <- struct{}{} },
	}
	return s
}

func (s *switchboard) take(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
	s.mu.Lock()
	s.atOnceForNode = s.atOnceForNode || s.open[node.Name]
	s.open[node.Name] = true
	s.calls = append(s.calls, node.Name)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[node.Name] = false
		s.now--
	}()
	select {
	case <-s.let:
		return []*x509.Certificate{{}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *switchboard) later(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(by)
}

// A node is called once, however many ask, and again when the answer is old; what it said counts meanwhile.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := newSwitchboard()
	for range 3 {
		if got := s.ask(t.Context(), "worker-1"); !got.calling {
			t.Fatalf("before it answered: %+v", got)
		}
	}
	if s.forget() != 1 {
		t.Error("a call that has not ended is forgotten")
	}
	s.let <- struct{}{}
	<-s.answered
	if got := s.ask(t.Context(), "worker-1"); got.calling || len(got.chain) != 1 || got.err != nil {
		t.Errorf("after it answered: %+v", got)
	}
	s.later(presentedFor)
	if got := s.ask(t.Context(), "worker-1"); !got.calling {
		t.Fatalf("an old answer counts: %+v", got)
	}
	s.let <- struct{}{}
	<-s.answered
	if got := s.ask(t.Context(), "gone"); !got.calling {
		t.Errorf("another node: %+v", got)
	}
	<-s.answered
	if got := s.ask(t.Context(), "gone"); !errors.Is(got.err, errNoAnswer) {
		t.Errorf("a node that is gone: %+v", got)
	}
	s.later(presentedFor)
	if s.forget() != 0 || len(s.known) != 0 {
		t.Errorf("old answers are kept: %v", s.known)
	}
	if s.wait(); !slices.Equal(s.calls, []string{"worker-1", "worker-1"}) {
		t.Errorf("calls: %v", s.calls)
	}
}

// However many are asked for, so many calls are made at once, in order, never two to one node; and nobody who asks waits.
func TestManyKubelets(t *testing.T) {
	t.Parallel()
	const nodes = 3 * parallelCalls
	s := newSwitchboard()
	for range 2 {
		for i := range nodes {
			s.ask(t.Context(), fmt.Sprintf("node-%03d", i))
		}
	}
	s.kubelets.mu.Lock()
	busy := s.busy
	s.kubelets.mu.Unlock()
	close(s.let)
	for range nodes {
		<-s.answered
	}
	s.wait()
	if busy != parallelCalls || s.most > parallelCalls || s.atOnceForNode || len(s.calls) != nodes {
		t.Errorf("%d calls, %d at once and %d later, two to one node: %t; want %d, at most %d", len(s.calls), busy, s.most, s.atOnceForNode, nodes, parallelCalls)
	}
	if late := slices.Index(s.calls, fmt.Sprintf("node-%03d", nodes-1)); late < nodes-parallelCalls-1 {
		t.Errorf("who asked last was call %d of %d", late, nodes)
	}
}

// Calls end with their context.
func TestKubeletsEnd(t *testing.T) {
	t.Parallel()
	s := newSwitchboard()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 2 * parallelCalls {
		s.ask(ctx, fmt.Sprintf("node-%03d", i))
	}
	cancel()
	s.wait()
	if s.forget() != 0 {
		t.Error("calls have not ended")
	}
}
