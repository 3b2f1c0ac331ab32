// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	"golang.org/x/term"

	conformance "github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/extension"
	"github.com/solonode/sno/conformance/report"
)

const (
	apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	setAside          = "/etc/kubernetes/kube-apiserver.yaml"
	// startLimit limits the start of an API server: its kubelet reads manifests every twenty seconds, and backs off from
	// one that ends.
	startLimit = 3 * time.Minute
)

// Times are for a cluster of real kubelets on one machine with all images.
func Times() conformance.Times {
	times := conformance.RealTimes()
	times.Poll = 500 * time.Millisecond
	times.Ready = time.Minute       // nothing is pulled
	times.Stuck = 15 * time.Second  // the scheduler backs off for up to ten seconds
	times.Quiet = 15 * time.Second  // no operator here resyncs
	times.Restart = 5 * time.Minute // no firmware
	return times
}

// Target returns the cluster as a target of the conformance suite. The caller stops the Env.
func (e *Env) Target() conformance.Target {
	target := conformance.Target{
		Config:   e.Cluster.RESTConfig(),
		Scenario: e.Scenario.Name, Description: e.Scenario.Description + ", real kubelets", Variant: "sno", Provider: e.provider,
		Expected: report.Modes{
			ControlPlane: string(e.Scenario.ControlPlaneTopology), Infrastructure: string(e.Scenario.InfrastructureTopology),
		},
		Times: Times(), Image: doNothing, Progress: GinkgoWriter,
		Logs: e.Logs, Operators: e.HostOperators,
	}
	if e.Kind != nil {
		target.RestartNode, target.Outage = e.Kind.Restart, e.Outage
	}
	return target
}

// RunSuite runs sno-tests on the cluster with these flags, and returns its exit code.
func (e *Env) RunSuite(ctx context.Context, flags ...string) int {
	return extension.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Colour:   term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "",
		Build:    extension.ReadBuild(),
		Provider: func(context.Context, extension.ClusterOptions) (conformance.Target, error) { return e.Target(), nil },
	}.Main(ctx, append([]string{"run"}, flags...))
}

// Outage stops the API server of the first control-plane node for a time, as if a person had moved the manifest of its
// static pod, and waits until it answers again. It starts it even if the context ends.
func (e *Env) Outage(ctx context.Context, length time.Duration) error {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	if _, err := e.Kind.Exec(ctx, nodes[0], "mv", apiServerManifest, setAside); err != nil {
		return err
	}
	err = e.stopFor(ctx, nodes[0], length)
	returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	if _, moved := e.Kind.Exec(returning, nodes[0], "mv", setAside, apiServerManifest); moved != nil {
		return errors.Join(err, moved)
	}
	return errors.Join(err, e.Kind.WaitForAPIServer(returning))
}

// stopFor stops the API server at once, without the grace period that its kubelet would grant, and waits.
func (e *Env) stopFor(ctx context.Context, node string, length time.Duration) error {
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
		return fmt.Errorf("an outage was interrupted: %w", ctx.Err())
	}
}
