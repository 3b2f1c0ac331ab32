package controller

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// way is a network between programs and an etcd that the test makes up: it counts connections, and can lose them.
type way struct {
	*testing.T
	etcd *etcdOf
	// address is where programs ask, behind is the socket on which etcd listens: nobody else takes it while etcd is away.
	address, behind string
	server          *grpc.Server

	mu     sync.Mutex
	opened int
	// open are the connections, silent those through which nothing goes any more.
	open, silent map[net.Conn]bool
}

func newWay(t *testing.T) *way {
	t.Helper()
	w := &way{T: t, etcd: &etcdOf{}, behind: filepath.Join(t.TempDir(), "etcd"), open: map[net.Conn]bool{}, silent: map[net.Conn]bool{}}
	w.etcd.set(1, 1)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = "http://" + front.Addr().String()
	t.Cleanup(func() { _ = front.Close(); w.stop() })
	go func() {
		for {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			go w.lead(conn)
		}
	}()
	w.start()
	return w
}

// start has etcd answer, stop has it go, and with it all connections.
func (w *way) start() {
	w.Helper()
	listener, err := net.Listen("unix", w.behind)
	if err != nil {
		w.Fatal(err)
	}
	w.server = grpc.NewServer()
	etcdserverpb.RegisterClusterServer(w.server, listing{etcd: w.etcd, endpoint: w.address})
	etcdserverpb.RegisterKVServer(w.server, reading{})
	go func(s *grpc.Server) { _ = s.Serve(listener) }(w.server) // stop ends it
}

func (w *way) stop() { w.server.Stop() }

func (w *way) lead(from net.Conn) {
	to, err := net.Dial("unix", w.behind)
	if err != nil {
		_ = from.Close()
		return
	}
	w.mu.Lock()
	w.opened++
	w.open[from] = true
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { w.carry(from, to, from) })
	both.Go(func() { w.carry(from, from, to) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, from)
}

// carry moves bytes of a connection, and swallows them once it is silent.
func (w *way) carry(of, from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		silent := w.silent[of]
		w.mu.Unlock()
		if silent {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// silence lets nothing through any more, in either direction, over the connections that are open.
func (w *way) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.open {
		w.silent[conn] = true
	}
}

func (w *way) count() (opened, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opened, len(w.open)
}

// knows asks, and must be told what the test made up.
func (w *way) knows(e *etcdMembers) {
	w.Helper()
	got, err := e.Members(w.Context())
	if diff := cmp.Diff(w.etcd.members, got); err != nil || diff != "" {
		w.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Who is asked again is asked over the same connection.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	w := newWay(t)
	e := &etcdMembers{endpoints: []string{w.address}, connections: &connections{}}
	w.knows(e)
	first, _ := w.count()
	for range 3 {
		w.knows(e)
		if opened, _ := w.count(); opened != first {
			t.Errorf("%d connections were opened, the first time %d", opened, first)
		}
	}
}

// What was known of an etcd that has gone is not what is told of it, nor is its being away what is told once it is back.
func TestConnectionsOutliveEtcd(t *testing.T) {
	t.Parallel()
	w := newWay(t)
	e := &etcdMembers{endpoints: []string{w.address}, connections: &connections{}}
	w.knows(e)
	w.stop()
	w.start()
	w.knows(e)
	w.stop()
	if got, err := e.Members(t.Context()); err == nil || got != nil {
		t.Errorf("nobody answers: %v, %v", got, err)
	}
	w.start()
	w.knows(e)
}

// A connection that is dead without anybody having said so does not make a healthy member a dead one.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	w := newWay(t)
	e := &etcdMembers{endpoints: []string{w.address}, connections: &connections{}}
	w.knows(e)
	w.silence()
	w.knows(e)
}

// The connection to a member that has left is not kept.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	c := &cluster{T: t}
	gone, stays := newWay(t), newWay(t)
	kept := &connections{}
	e := &etcdMembers{endpoints: []string{gone.address}, connections: kept}
	gone.knows(e)
	e.endpoints = []string{stays.address}
	stays.knows(e)
	c.eventually("the connections to the old endpoint end", func() error {
		if _, open := gone.count(); open > 0 {
			return errStillThere
		}
		return nil
	})
	if _, open := stays.count(); open == 0 {
		t.Error("none is kept to the new one")
	}
}

// Two who ask at once have a connection each, and none is left over.
func TestConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	c := &cluster{T: t}
	w := newWay(t)
	e := &etcdMembers{endpoints: []string{w.address}, connections: &connections{}}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() { w.knows(e) })
	}
	asking.Wait()
	w.knows(e)
	c.eventually("those that are not needed end", func() error {
		if _, open := w.count(); open > 2 {
			return errStillThere
		}
		return nil
	})
}
