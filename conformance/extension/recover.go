// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/conformance/traffic"
)

type recoverOptions struct {
	run                          runOptions
	route, routeAddress, outside string
	folder                       string
}

const (
	// canaryRoute exists on every OpenShift cluster, for requests of its ingress operator.
	canaryRoute = "openshift-ingress-canary/canary"
	ownClient   = "sno-tests"
	// answeredFor is how long requests must be answered before traffic counts as restored.
	answeredFor = 5 * time.Second
	// firstAnswer is for the first requests, before anything is disturbed.
	firstAnswer = time.Minute
)

var (
	errNoTraffic = errors.New("requests through the Route are not answered before a disruption")
	errWorse     = errors.New("a check is worse than before")
)

func (p Program) recover() *cobra.Command {
	var o recoverOptions
	c := &cobra.Command{
		Use: "recover -o FOLDER", GroupID: groupPeople, Short: "Check a cluster before and after disruptions with traffic", Args: cobra.NoArgs,
		Long: `Check a cluster, disturb it while clients send requests through a Route, check it again and compare the reports.

The disruptions: the pods of the default router are deleted; every node of the control plane reboots, with --reboot-command; the
cluster is upgraded, with --upgrade-command. Each must be proved, and requests must be answered again before the next one.

sno-tests sends a request every 50 ms, each with a new connection. --client-command adds a client elsewhere, for example
'ssh laptop sno-tests traffic'. The folder gets before.yaml, after.yaml with the requests, requests.txt and difference.txt.

The exit code is 0 if the cluster recovered and no check became worse, 1 if not, 2 for invalid arguments or an unusable cluster.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.recovered(c.Context(), o) },
	}
	flags := c.Flags()
	o.run.cluster.bind(flags)
	o.run.cluster.bindHooks(flags)
	flags.StringSliceVar(&o.run.tiers, "tiers", []string{string(catalogue.Static), string(catalogue.Scheduled)}, "tiers to run before and after")
	flags.StringVar(&o.run.artifacts, "artifacts", "", "folder for artifacts of failed checks, and for the output of the commands")
	flags.StringVar(&o.run.waivers, "waivers", "", "file of waivers: known failures with an expiry date")
	flags.StringVar(&o.route, "route", canaryRoute, "NAMESPACE/NAME of the Route; it must answer GET with a status below 400")
	flags.StringVar(&o.routeAddress, "route-address", "", "HOST:PORT to connect to, if the host of the Route does not resolve")
	flags.StringVar(&o.outside, "client-command", "",
		"shell command of a further client; it gets the URL and the address as arguments, and prints \"ok\" or \"failed\" for each request")
	flags.StringVarP(&o.folder, "output", "o", "", "folder for the reports and their difference")
	_ = c.MarkFlagRequired("output") // the flag exists
	return c
}

func (p Program) recovered(ctx context.Context, o recoverOptions) error {
	chosen, err := p.choose(o.run.selection())
	if err != nil {
		return err
	}
	waivers, err := p.readWaivers(o.run.waivers)
	if err != nil {
		return err
	}
	route, err := parseRoute(o.route)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return fmt.Errorf("output %s: %w", o.folder, err)
	}
	o.run.cluster.options.Route = &route
	target, stop, err := o.run.cluster.connect(ctx, p, chosen, o.run.artifacts)
	defer stop()
	if err != nil {
		return err
	}
	target.Stop = nil // a run must not delete the cluster
	if target.Times == (cluster.Times{}) {
		target.Times = cluster.RealTimes()
	}
	endpoint, err := endpointOf(ctx, target.Config, route, o.routeAddress)
	if err != nil {
		return err
	}
	suite := recoverySuite{Program: p, options: o, target: target, checks: chosen, waivers: waivers}
	before, err := suite.run(ctx, "before", nil)
	if err != nil {
		return err
	}
	r, err := p.disrupt(ctx, target, endpoint, o.outside)
	if err != nil {
		return err
	}
	all := r.requests()
	err = p.write(filepath.Join(o.folder, "requests.txt"), func(w io.Writer) error { return writeRequests(w, all) })
	after, failure := suite.run(ctx, "after", measurements(all))
	err = errors.Join(err, failure)
	if len(after.Results) > 0 {
		difference := report.Diff([]report.Report{before}, []report.Report{after})
		err = errors.Join(err, p.write(filepath.Join(o.folder, "difference.txt"), difference.WriteText))
		if difference.Regressed() {
			err = errors.Join(errWorse, err)
		}
	}
	if err := errors.Join(r.verdict(), err); err != nil {
		return fmt.Errorf("%w: %w", errFailed, err)
	}
	return nil
}

// recoverySuite is the suite that runs before and after the disruptions.
type recoverySuite struct {
	Program
	options recoverOptions
	target  cluster.Target
	checks  []catalogue.Check
	waivers []report.Waiver
}

func (s recoverySuite) run(ctx context.Context, when string, measured []report.Measurement) (report.Report, error) {
	fmt.Fprintf(s.Err, "\nThe suite %s the disruptions:\n", when)
	show := newScreen(s.Err, s.Colour, s.checks)
	artifacts := s.options.run.artifacts
	if artifacts != "" {
		artifacts = filepath.Join(artifacts, when)
	}
	done, err := execution{Program: s.Program, target: s.target, checks: s.checks, artifacts: artifacts, each: show.finished}.run(ctx)
	if len(done.Results) == 0 {
		return done, err
	}
	unused := report.Apply([]report.Report{done}, s.waivers, s.Now())
	done.Measurements = measured
	file := filepath.Join(s.options.folder, when+".yaml")
	err = errors.Join(err, writeFile(file, done, report.WriteYAML))
	show.summary(done, unused, []string{file})
	return done, err
}

// disrupt performs the disruptions of which the target is capable. It returns an error if they cannot begin or are
// interrupted.
func (p Program) disrupt(ctx context.Context, target cluster.Target, endpoint traffic.Endpoint, outside string) (*recovery, error) {
	disturber, err := runner.Disturber(ctx, target)
	if err != nil {
		return nil, err
	}
	r := &recovery{stable: answeredFor, limit: target.Times.Settle}
	r.steps = []step{{name: "the router is deleted", act: disturber.DeleteRouters}}
	if target.RestartNode != nil {
		r.steps = append(r.steps, step{name: "the control plane reboots", act: disturber.RestartControlPlane})
	}
	if target.Upgrade != nil {
		r.steps = append(r.steps, step{name: "the cluster is upgraded", act: disturber.Upgrade})
	}
	fmt.Fprintf(p.Err, "\nRequests to %s\n", endpoint.URL)
	r.clients = []trafficClient{{name: ownClient, requester: traffic.Start(ctx, endpoint)}}
	if outside != "" {
		problems := func(line string) { fmt.Fprintf(p.Err, "client-command: %s\n", line) }
		r.clients = append(r.clients, trafficClient{name: outside, requester: traffic.Listen(ctx, outside, endpoint, problems)})
	}
	for _, c := range r.clients {
		if err := c.WaitAnswered(ctx, answeredFor, firstAnswer); err != nil {
			r.stop()
			return nil, fmt.Errorf("%w; --route-address names the router if the host does not resolve: %w", errNoTraffic, err)
		}
	}
	r.run(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the recovery was interrupted: %w", context.Cause(ctx))
	}
	return r, nil
}

// write writes a text into a file and to the standard output.
func (p Program) write(name string, content func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return errors.Join(content(io.MultiWriter(file, p.Out)), file.Close())
}
