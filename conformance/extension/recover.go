// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/disturb"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/conformance/traffic"
)

type recoverOptions struct {
	run                 runOptions
	route, routeAddress string
	folder              string
}

const (
	// canaryRoute exists on every OpenShift cluster, for requests of its ingress operator.
	canaryRoute = "openshift-ingress-canary/canary"
	// answeredFor is how long requests must be answered before traffic counts as restored.
	answeredFor = 5 * time.Second
	// firstAnswer is for the first requests, before anything is disturbed.
	firstAnswer = time.Minute
)

var (
	errNoTraffic = errors.New("requests through the Route are not answered before a disruption")
	// errUnrecovered is returned if a step was not performed, an operand is not available, or requests are not answered.
	errUnrecovered = errors.New("not recovered")
	errWorse       = errors.New("a check is worse than before")
)

func (p Program) recover() *cobra.Command {
	var o recoverOptions
	c := &cobra.Command{
		Use: "recover -o FOLDER", GroupID: groupPeople, Short: "Check a cluster before and after disruptions with traffic", Args: cobra.NoArgs,
		Long: `Check a cluster, disturb it while a client sends requests through a Route, check it again and compare the reports.

The disruptions: the pods of the default router are deleted; every node of the control plane reboots, with --reboot-command; the
cluster is upgraded, with --upgrade-command. Each must be proved, and requests must be answered again before the next one.

The client is this program: a request every 50 ms, each with a new connection. The folder gets before.yaml, and after.yaml with the
requests.

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
	flags.StringVarP(&o.folder, "output", "o", "", "folder for the reports")
	_ = c.MarkFlagRequired("output") // the flag exists
	return c
}

func (p Program) recovered(ctx context.Context, o recoverOptions) error {
	chosen, err := runner.Select(p.Catalogue, o.run.selection())
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
	target, err := o.run.cluster.connect(ctx, p, chosen, o.run.artifacts)
	if err != nil {
		return err
	}
	endpoint, err := endpointOf(ctx, target.Config, route, o.routeAddress)
	if err != nil {
		return err
	}
	suite := func(when string, measured []report.Measurement) (report.Report, error) {
		fmt.Fprintf(p.Err, "\nThe suite %s the disruptions:\n", when)
		a := assessment{
			execution: execution{Program: p, target: target, checks: chosen, artifacts: o.run.artifacts},
			waivers:   waivers, files: []string{filepath.Join(o.folder, when+".yaml")}, measured: measured,
		}
		if a.artifacts != "" {
			a.artifacts = filepath.Join(a.artifacts, when)
		}
		return a.run(ctx)
	}
	before, err := suite("before", nil)
	if err != nil {
		return err
	}
	disturber, err := runner.Disturber(ctx, target)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "\nRequests to %s\n", endpoint.URL)
	users := traffic.Start(ctx, endpoint)
	defer users.Stop()
	if err := users.WaitAnswered(ctx, answeredFor, firstAnswer); err != nil {
		return fmt.Errorf("%w; --route-address names the router if the host does not resolve: %w", errNoTraffic, err)
	}
	r := recovery{users: users, stable: answeredFor, limit: disturber.Target.Times.Settle}
	failure := r.run(ctx, stepsOf(disturber))
	if ctx.Err() != nil {
		return fmt.Errorf("the recovery was interrupted: %w", context.Cause(ctx))
	}
	for _, row := range r.rows {
		fmt.Fprintf(p.Out, "%s: %s\n", row.What, row.Measured)
	}
	after, err := suite("after", r.rows)
	failure = errors.Join(failure, err)
	if len(after.Results) > 0 {
		difference := report.Diff([]report.Report{before}, []report.Report{after})
		failure = errors.Join(failure, difference.WriteText(p.Out))
		if difference.Regressed() {
			failure = errors.Join(failure, errWorse)
		}
	}
	if failure != nil {
		return fmt.Errorf("%w: %w", errFailed, failure)
	}
	return nil
}

type step struct {
	name string
	act  func(context.Context) (*catalogue.Disruption, error)
}

// stepsOf are those of which the target is capable.
func stepsOf(disturber *disturb.Disturber) []step {
	steps := []step{{"the router is deleted", disturber.DeleteRouters}}
	if disturber.Target.RestartNode != nil {
		steps = append(steps, step{"the control plane reboots", disturber.RestartControlPlane})
	}
	if disturber.Target.Upgrade != nil {
		steps = append(steps, step{"the cluster is upgraded", disturber.Upgrade})
	}
	return steps
}

// recovery performs steps while a client sends requests.
type recovery struct {
	users *traffic.Generator
	// Requests count as answered again after stable without a failure, for which limit is the time.
	stable, limit time.Duration
	// rows are the requests of each step.
	rows []report.Measurement
}

// run performs the steps until one of them has a problem.
func (r *recovery) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		begun := time.Now()
		err := r.perform(ctx, s)
		samples, failed := r.users.Since(begun), 0
		for _, sample := range samples {
			if sample.Problem != "" {
				failed++
			}
		}
		outage := traffic.Longest(traffic.Outages(samples), time.Now())
		r.rows = append(r.rows, report.Measurement{
			What:     "Requests through the Route, " + s.name,
			Measured: fmt.Sprintf("%d sent, %d failed, longest outage %.2f s", len(samples), failed, outage.Seconds()),
			Held:     err == nil,
		})
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errUnrecovered, s.name, err)
		}
	}
	return nil
}

func (r *recovery) perform(ctx context.Context, s step) error {
	disruption, err := s.act(ctx)
	if err != nil {
		return err
	}
	for _, o := range disruption.Operands {
		if o.Failure != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", o.Name, o.Failure))
		}
	}
	return errors.Join(err, r.users.WaitAnswered(ctx, r.stable, r.limit))
}

var (
	errRouteName = errors.New("not NAMESPACE/NAME of a Route")
	errNoHost    = errors.New("the Route has no host")
)

func parseRoute(text string) (types.NamespacedName, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(text)
	if err != nil || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("%w: %q", errRouteName, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// endpointOf returns what a Route publishes: https with TLS.
func endpointOf(ctx context.Context, config *rest.Config, name types.NamespacedName, address string) (traffic.Endpoint, error) {
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		return traffic.Endpoint{}, err
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return traffic.Endpoint{}, fmt.Errorf("connect: %w", err)
	}
	route := &routev1.Route{}
	if err := kube.Get(ctx, name, route); err != nil {
		return traffic.Endpoint{}, fmt.Errorf("read Route %s: %w", name, err)
	}
	host := route.Spec.Host
	for _, ingress := range route.Status.Ingress {
		host = cmp.Or(host, ingress.Host)
	}
	if host == "" {
		return traffic.Endpoint{}, fmt.Errorf("%w: %s", errNoHost, name)
	}
	protocol := "http"
	if route.Spec.TLS != nil {
		protocol = "https"
	}
	return traffic.Endpoint{URL: protocol + "://" + host + cmp.Or(route.Spec.Path, "/"), Address: address}, nil
}
