package etcdguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/patchtest"
)

// What SafeToRemove and Spare say is what a real etcd then does. Its own check of reconfigurations is off, so that it also does
// what it should not: an unsafe removal is carried out, and then nothing can be written anymore.
func TestRealEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts members of etcd; make proof runs it")
	}
	const kill, removeDead, removeLive = "kill", "remove a dead member", "remove a live member"
	folder, err := patchtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	// Most of the time is spent waiting for etcd to give up, so all run at once.
	for _, script := range []struct {
		size int
		do   []string
	}{
		{3, []string{removeLive, kill}},
		{3, []string{kill, removeLive}},
		{3, []string{kill, kill, removeDead}},
		{5, []string{kill, kill, removeDead, removeDead, kill, removeDead, removeLive}},
		{5, []string{kill, removeLive, kill}},
		{5, []string{kill, kill, removeLive}},
	} {
		running.Go(func() {
			e, err := startEtcd(ctx, filepath.Join(folder, "etcd"), t.TempDir(), script.size)
			if err != nil {
				t.Errorf("%d members: %v", script.size, err)
				return
			}
			defer e.stop()
			done := ""
			for _, action := range script.do {
				done += ", " + action
				switch action {
				case kill:
					err = e.killOne(ctx)
				default:
					err = e.removeOne(ctx, action == removeLive)
				}
				if err != nil {
					t.Errorf("%d members%s: %v", script.size, done, err)
					return
				}
			}
		})
	}
}

const removePath = "/v3/cluster/member/remove"

// etcdCluster is a cluster of processes.
type etcdCluster struct {
	members []*etcdProcess
}

type etcdProcess struct {
	id     uint64
	client *http.Client
	cmd    *exec.Cmd
	output *bytes.Buffer
	exited chan struct{}
	// alive and member are what the test made of it.
	alive, member bool
}

func startEtcd(ctx context.Context, program, folder string, n int) (*etcdCluster, error) {
	// Sockets in the folder, named as etcd names them: a port could be taken by somebody else before it is used.
	socket := func(kind string, i int) string { return fmt.Sprintf("%s%d:0", kind, i) }
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("m%d=unix://%s", i, socket("peer", i)))
	}
	e := &etcdCluster{}
	for i := range n {
		p := &etcdProcess{output: &bytes.Buffer{}, exited: make(chan struct{}), alive: true, member: true}
		p.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, socket("client", i)))
		}}}
		name := fmt.Sprintf("m%d", i)
		p.cmd = exec.CommandContext(ctx, program, "--name="+name, "--data-dir="+name, //nolint:gosec // the binary that the test is about
			"--listen-peer-urls=unix://"+socket("peer", i), "--initial-advertise-peer-urls=unix://"+socket("peer", i),
			"--listen-client-urls=unix://"+socket("client", i), "--advertise-client-urls=unix://"+socket("client", i),
			"--initial-cluster="+strings.Join(all, ","), "--initial-cluster-token="+filepath.Base(folder), "--strict-reconfig-check=false",
			"--heartbeat-interval=100", "--election-timeout=500", "--unsafe-no-fsync", "--log-level=error")
		p.cmd.Dir = folder
		p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = p.output, p.output, os.Environ()
		if err := p.cmd.Start(); err != nil {
			e.stop()
			return nil, err
		}
		go func() { _ = p.cmd.Wait(); close(p.exited) }()
		e.members = append(e.members, p)
	}
	if err := e.writes(ctx, true); err != nil {
		e.stop()
		return nil, fmt.Errorf("starting: %w\n%s", err, e.members[0].output)
	}
	members, err := e.members[0].list(ctx)
	if err != nil {
		e.stop()
		return nil, err
	}
	for id, name := range members {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
		if err != nil {
			e.stop()
			return nil, err
		}
		e.members[i].id = id
	}
	return e, nil
}

func (e *etcdCluster) stop() {
	for _, p := range e.members {
		p.kill()
	}
}

func (p *etcdProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// listed is what an operator would read from etcd and from the health of its members.
func (e *etcdCluster) listed() []etcdguard.Member {
	var list []etcdguard.Member
	for _, p := range e.members {
		if p.member {
			list = append(list, etcdguard.Member{ID: p.id, Healthy: p.alive})
		}
	}
	return list
}

// first is the first member that is alive, last the last one that is alive or dead.
func (e *etcdCluster) first() *etcdProcess {
	for _, p := range e.members {
		if p.member && p.alive {
			return p
		}
	}
	return nil
}

func (e *etcdCluster) last(alive bool) *etcdProcess {
	for i := range e.members {
		if p := e.members[len(e.members)-1-i]; p.member && p.alive == alive {
			return p
		}
	}
	return nil
}

// killOne stops a member, and compares what etcd does with Spare and SafeToRestart.
func (e *etcdCluster) killOne(ctx context.Context) error {
	want := etcdguard.Spare(e.listed()) > 0
	p := e.last(true)
	restart, err := etcdguard.SafeToRestart(clusterOf(ha), e.listed(), p.id)
	if err != nil || restart.Safe != want {
		return fmt.Errorf("it may be restarted: %+v, want %t, %w", restart, want, err)
	}
	p.kill()
	p.alive = false
	return e.writes(ctx, want)
}

// removeOne takes a member out, and compares what etcd does with SafeToRemove.
func (e *etcdCluster) removeOne(ctx context.Context, alive bool) error {
	p := e.last(alive)
	minimum, err := etcdguard.MinimumMembers(clusterOf(sr), nil)
	if err != nil {
		return err
	}
	removal, err := etcdguard.SafeToRemove(minimum, e.listed(), p.id)
	if err != nil {
		return err
	}
	body := map[string]any{"ID": strconv.FormatUint(p.id, 10)}
	if removal.Obstacle == etcdguard.NoQuorum {
		return e.staysDespite(ctx, p, body)
	}
	if err := e.answers(ctx, true, removePath, body); err != nil {
		return err
	}
	p.member = false
	return e.writes(ctx, removal.Safe)
}

// staysDespite checks that without a quorum etcd agrees neither on the removal, which it never gives up on, nor on a write.
func (e *etcdCluster) staysDespite(ctx context.Context, p *etcdProcess, body any) error {
	asking, giveUp := context.WithCancel(ctx)
	answered := make(chan error, 1)
	go func() { answered <- e.first().call(asking, removePath, body, nil) }()
	err := e.writes(ctx, false)
	giveUp()
	if <-answered == nil {
		return errors.New("etcd agreed on the removal")
	}
	if err != nil {
		return err
	}
	members, err := e.first().list(ctx)
	if err == nil && members[p.id] == "" {
		return errors.New("the member is gone")
	}
	return err
}

// writes checks that a write succeeds, or that none does.
func (e *etcdCluster) writes(ctx context.Context, want bool) error {
	return e.answers(ctx, want, "/v3/kv/put", map[string]any{"key": "a2V5", "value": "dmFsdWU="})
}

// answers checks that a request succeeds in the end, or that etcd gives up on it for want of a quorum. Other refusals, as during
// an election, count for neither.
func (e *etcdCluster) answers(ctx context.Context, want bool, path string, body map[string]any) error {
	last := errors.New("nothing was asked")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := e.first().call(ctx, path, body, nil)
		if err == nil && !want {
			return false, errors.New("it succeeded, although it should not")
		}
		if err == nil {
			return true, nil
		}
		switch last = err; {
		case want && strings.Contains(last.Error(), "member not found"):
			return true, nil // an earlier request was carried out although its answer said something else
		}
		// It says the first while it takes itself for the leader, and the second when there is none.
		return !want && (strings.Contains(last.Error(), "request timed out") || strings.Contains(last.Error(), "Gateway Timeout")), nil
	})
	if err != nil {
		return fmt.Errorf("%s, want success %t: %w; the last answer: %w", path, want, err, last)
	}
	return nil
}

// list is what this member knows of all: their names by ID.
func (p *etcdProcess) list(ctx context.Context) (map[uint64]string, error) {
	var answer struct {
		Members []struct{ ID, Name string }
	}
	if err := p.call(ctx, "/v3/cluster/member/list", map[string]any{"linearizable": false}, &answer); err != nil {
		return nil, err
	}
	members := map[uint64]string{}
	for _, m := range answer.Members {
		id, err := strconv.ParseUint(m.ID, 10, 64)
		if err != nil {
			return nil, err
		}
		members[id] = m.Name
	}
	return members, nil
}

// call goes through etcd's JSON gateway.
func (p *etcdProcess) call(ctx context.Context, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, raw)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}
