package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
)

// Options say how much to measure.
type Options struct {
	// TopologyChanges is the number of topology changes, alternating between the two directions.
	TopologyChanges int
	// IdleTime is how long the cluster is left alone while its writes are counted.
	IdleTime time.Duration
	// Nodes and Pods are the size of the large cluster.
	Nodes, Pods int
	// Settle is how long the controller runs on the large cluster before its memory is read.
	Settle time.Duration
	// MakeTest also times `make test`, which should be warm.
	MakeTest bool
	// Only selects steps by their names; nil selects all.
	Only *regexp.Regexp
	// Progress is told what happens.
	Progress io.Writer
}

// Row is one line of the table.
type Row struct {
	What, Measured, Bound, Compared string
	// Held says whether the bound was kept.
	Held bool
}

const (
	patience = 2 * time.Minute
	poll     = 100 * time.Millisecond
	mebi     = 1 << 20
)

// errFigures says that a figure could not be taken.
var errFigures = errors.New("cannot measure")

// steps are what is measured, in the order of the table.
var steps = []struct {
	name string
	take func(context.Context, Options) ([]Row, error)
}{
	{"start", warmStart},
	{"ingress", ingressFlips},
	{"console", consoleFlips},
	{"auth", authFlips},
	{"etcdguard", guardFlips},
	{"machineconfig", drainTimes},
	{"approver", requestFlood},
	{"memory", memory},
	{"together", allTogether},
	{"test", makeTest},
}

// Steps names what can be measured.
func Steps() []string {
	var names []string
	for _, step := range steps {
		names = append(names, step.name)
	}
	return names
}

// Run takes the figures. Rows that were taken before an error are returned with it.
func Run(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	taken := 0
	for _, step := range steps {
		if o.Only != nil && !o.Only.MatchString(step.name) {
			continue
		}
		measured, err := step.take(ctx, o)
		rows, taken = append(rows, measured...), taken+1
		if err != nil {
			return rows, err
		}
	}
	if taken == 0 {
		return nil, fmt.Errorf("%w: no step matches %q; there are %v", errFigures, o.Only, Steps())
	}
	return rows, nil
}

// warmStart is the time from nothing to the first pod that runs on a simulated node.
func warmStart(ctx context.Context, o Options) ([]Row, error) {
	// The first start may have to build Kubernetes; only the second one is warm.
	c, err := embedded.Start(ctx, embedded.Config{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	if err := c.Stop(); err != nil {
		return nil, err
	}
	started := time.Now()
	if c, err = embedded.Start(ctx, embedded.Config{}); err != nil {
		return nil, err
	}
	err = func() error {
		if err := c.AddNode(ctx, embedded.NodeSpec{Name: "node", Roles: []string{"worker"}}); err != nil {
			return err
		}
		pod := newPod("first", "")
		if err := c.Client().Create(ctx, pod); err != nil {
			return fmt.Errorf("create the first pod: %w", err)
		}
		return wait.PollUntilContextTimeout(ctx, poll/5, patience, true, func(ctx context.Context) (bool, error) {
			err := c.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return pod.Status.Phase == corev1.PodRunning, err
		})
	}()
	took := time.Since(started)
	if err := errors.Join(err, c.Stop()); err != nil {
		return nil, err
	}
	return []Row{{
		What: "Embedded cluster, warm start to first pod Running", Measured: seconds(took), Bound: "< 10 s", Compared: "-", Held: took < 10*time.Second,
	}}, nil
}

// makeTest times the whole test run.
func makeTest(ctx context.Context, o Options) ([]Row, error) {
	if !o.MakeTest {
		return nil, nil
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return nil, err
	}
	say(o.Progress, "Running make test")
	started := time.Now()
	// Compiled already, but every test runs: a shuffled run is never taken from the cache.
	cmd := exec.CommandContext(ctx, "make", "test")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	took := time.Since(started)
	if err != nil {
		return nil, fmt.Errorf("make test: %w\n%s", err, output)
	}
	return []Row{{What: "make test, warm", Measured: seconds(took), Bound: "< 5 min", Compared: "-", Held: took < 5*time.Minute}}, nil
}

// percentile of sorted durations, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func say(out io.Writer, format string, args ...any) {
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
