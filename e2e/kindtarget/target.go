package kindtarget

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/extension"
	"github.com/solonode/sno/conformance/report"
)

const (
	apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	setAside          = "/etc/kubernetes/kube-apiserver.yaml"
	// back is how long an API server may take to come back: its kubelet looks every twenty seconds, and backs off from one that ends.
	back = 3 * time.Minute
)

// Times are for a cluster of real kubelets on one machine, whose images are all there.
func Times() checks.Times {
	times := checks.RealTimes()
	times.Poll = 500 * time.Millisecond
	times.Ready = time.Minute       // nothing is pulled
	times.Stuck = 15 * time.Second  // the scheduler backs off for up to ten seconds
	times.Quiet = 15 * time.Second  // no operator here resyncs
	times.Restart = 5 * time.Minute // no firmware
	return times
}

// Target is the cluster for the conformance suite. Stop is left to whoever started the Env.
func (e *Env) Target() checks.Target {
	target := checks.Target{
		Config:   e.Cluster.RESTConfig(),
		Scenario: e.Scenario.Name, Description: e.Scenario.Description + ", real kubelets", Variant: "sno", Provider: e.provider,
		Expected: report.Modes{
			ControlPlane: string(e.Scenario.ControlPlaneTopology), Infrastructure: string(e.Scenario.InfrastructureTopology),
		},
		Times: Times(), Image: doNothing, Progress: e.Progress,
		Logs: e.Logs,
	}
	if e.Kind != nil {
		target.RestartNode, target.Outage = e.Kind.Restart, e.Outage
	}
	return target
}

// RunSuite runs sno-tests on the cluster, with these flags, and returns its exit code.
func (e *Env) RunSuite(ctx context.Context, flags ...string) int {
	return extension.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Colour:   term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "",
		Build:    extension.ReadBuild(),
		Provider: func(context.Context, extension.ClusterOptions) (checks.Target, error) { return e.Target(), nil },
	}.Main(ctx, append([]string{"run"}, flags...))
}

// Outage takes the API server of the first control-plane node away for a time, as somebody does who moves the manifest of its static pod. It returns when it
// answers again, which it does even if nobody waits any more.
func (e *Env) Outage(ctx context.Context, length time.Duration) error {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	if _, err := e.Kind.Exec(ctx, nodes[0], "mv", apiServerManifest, setAside); err != nil {
		return err
	}
	err = e.away(ctx, nodes[0], length)
	returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), back)
	defer cancel()
	if _, moved := e.Kind.Exec(returning, nodes[0], "mv", setAside, apiServerManifest); moved != nil {
		return errors.Join(err, moved)
	}
	return errors.Join(err, e.Kind.WaitForAPIServer(returning))
}

// away ends the API server, of which its kubelet would let go only after its grace period, and waits.
func (e *Env) away(ctx context.Context, node string, length time.Duration) error {
	const end = "crictl ps --quiet --name '^kube-apiserver$' | xargs --no-run-if-empty crictl stop --timeout 1"
	if _, err := e.Kind.Exec(ctx, node, "sh", "-c", end); err != nil {
		return err
	}
	over := time.NewTimer(length)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("an outage was cut short: %w", ctx.Err())
	}
}
