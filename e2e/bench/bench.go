// SPDX-License-Identifier: Apache-2.0

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

// Options configure the measurements.
type Options struct {
	// TopologyChanges is the number of topology changes, alternating between the two directions.
	TopologyChanges int
	// IdleTime is how long writes are counted on an idle cluster.
	IdleTime time.Duration
	// Nodes and Pods are the size of the large cluster.
	Nodes, Pods int
	Settle      time.Duration
	// MakeTest also times `make test`, which should be warm.
	MakeTest bool
	// Only selects steps by their names; nil selects all.
	Only     *regexp.Regexp
	Progress io.Writer
}

// Row is a row of the table.
type Row struct {
	What, Measured, Bound, Compared string
	// Held reports whether the bound was met.
	Held bool
}

const (
	waitTimeout = 2 * time.Minute
	poll        = 100 * time.Millisecond
	mebi        = 1 << 20
)

var errFigures = errors.New("cannot measure")

var steps = []struct {
	name string
	take func(context.Context, Options) ([]Row, error)
}{
	{"start", warmStart},
	{"ingress", ingressChanges},
	{"console", consoleChanges},
	{"auth", authChanges},
	{"etcdguard", guardChanges},
	{"machineconfig", drainTimes},
	{"approver", requestFlood},
	{"memory", memory},
	{"together", allCombined},
	{"test", makeTest},
}

// Steps returns the names of all measurements.
func Steps() []string {
	var names []string
	for _, step := range steps {
		names = append(names, step.name)
	}
	return names
}

// Run takes the measurements. With an error it returns the rows that precede it.
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

// warmStart measures the time until the first pod runs on a simulated node.
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
		return wait.PollUntilContextTimeout(ctx, poll/5, waitTimeout, true, func(ctx context.Context) (bool, error) {
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

func makeTest(ctx context.Context, o Options) ([]Row, error) {
	if !o.MakeTest {
		return nil, nil
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return nil, err
	}
	logf(o.Progress, "Running make test")
	started := time.Now()
	// A shuffled run uses compiled tests, but never cached results.
	cmd := exec.CommandContext(ctx, "make", "test")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	took := time.Since(started)
	if err != nil {
		return nil, fmt.Errorf("make test: %w\n%s", err, output)
	}
	return []Row{{What: "make test, warm", Measured: seconds(took), Bound: "< 5 min", Compared: "-", Held: took < 5*time.Minute}}, nil
}

// percentile returns a percentile of sorted durations by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func logf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
