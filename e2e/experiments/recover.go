// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/e2e/programs"
)

// Recover runs the test plan of the enhancement of added workers (R-SUITE-6, R-SUITE-7, R-SUITE-8) as a person does on
// a cluster of others: `sno-tests recover` with a kubeconfig and commands. The upgrade is that of a stand-in for the
// cluster-version-operator, with another image of the router.
var Recover = kindtarget.Experiment{
	Name: "recover", Scenario: "none-sno-day2-workers", Exclusive: true,
	Description: "sno-tests recover, with a kubeconfig and commands, finds traffic and the suite restored after the router's deletion, a reboot and an upgrade",
	Run:         recovers,
}

// SameVerdicts runs the suite with all tiers on one cluster twice: with the acts of its provider, and by a kubeconfig
// and commands.
var SameVerdicts = kindtarget.Experiment{
	Name: "same-verdicts", SecondCluster: true, Run: sameVerdicts,
	Description: "the suite has the same verdicts by a kubeconfig and commands as with the acts of its provider",
}

var (
	errRecover  = errors.New("sno-tests recover failed")
	errVerdicts = errors.New("the verdicts differ")
)

// rebootCommand resets a node, which is its last argument.
const rebootCommand = "docker restart -t 0"

// outageScript moves the manifest of the API server away and back, also if it is interrupted. The document of the suite
// on a cluster of the reader does the same by ssh.
const outageScript = `#!/bin/sh
on() { docker exec NODE "$@"; }
trap 'on mv --no-clobber /etc/kubernetes/kube-apiserver.yaml /etc/kubernetes/manifests/ 2>/dev/null' EXIT
trap 'exit 1' TERM
on mv /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/ || exit
on sh -c "crictl ps --quiet --name '^kube-apiserver$' | xargs --no-run-if-empty crictl stop --timeout 1"
sleep "$SNO_OUTAGE_SECONDS"
`

func recovers(ctx context.Context, e *kindtarget.Env) (err error) {
	s, err := openSite(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := e.AddDay2Workers(ctx); err != nil {
		return err
	}
	binary, err := programs.Build(ctx, programs.SNOTests, e.Progress)
	if err != nil {
		return err
	}
	if err := s.route(ctx); err != nil {
		return err
	}
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := e.Upgrade(r.Context(), func(ctx context.Context) error { return s.run(ctx, secondRouter) }); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer operator.Close()
	folder := filepath.Join(e.Figures, "recover")
	cmd := exec.CommandContext(ctx, binary, "recover", "-o", folder, "--artifacts", filepath.Join(folder, "artifacts"),
		"--kubeconfig", e.Kind.Kubeconfig(), "--scenario", e.Scenario.Name,
		"--reboot-command", rebootCommand, "--upgrade-command", "curl --fail --silent --show-error "+operator.URL,
		"--route", metav1.NamespaceDefault+"/"+siteName, "--route-address", net.JoinHostPort(s.address, "443"),
		"--client-command", binary+" traffic")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, e.Progress
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %w\n%s", errRecover, err, output.String())
	}
	after, err := report.ReadFiles(filepath.Join(folder, "after.yaml"))
	if err != nil {
		return err
	}
	var rows []bench.Row
	for _, m := range after[0].Measurements {
		m.What = strings.Replace(m.What, binary, "sno-tests", 1)
		rows = append(rows, bench.Row{What: m.What, Measured: m.Measured, Bound: "answered again", Compared: "-", Held: m.Held})
	}
	return record(e, "recover", rows)
}

// route creates what a user of OpenShift creates for the application. The proxy of the site does not read it.
func (s *site) route(ctx context.Context) error {
	if err := s.Cluster.InstallCRDs(ctx, []string{"route/v1/zz_generated.crd-manifests/routes.crd.yaml"}, nil); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		return err
	}
	kube, err := client.New(s.Cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	route := &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: siteName},
		Spec: routev1.RouteSpec{
			Host: "site.apps.example.com", To: routev1.RouteTargetReference{Kind: "Service", Name: siteName},
			TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge},
		},
	}
	if err := kube.Create(ctx, route); err != nil {
		return fmt.Errorf("create Route %s: %w", siteName, err)
	}
	return nil
}

func sameVerdicts(ctx context.Context, e *kindtarget.Env) error {
	own := e.Target()
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	script := filepath.Join(e.Cluster.Dir(), "outage")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(outageScript, "NODE", nodes[0])), 0o700); err != nil { //nolint:gosec // it is a program
		return fmt.Errorf("write the command of the outage: %w", err)
	}
	hooked, err := existing.Target(ctx, existing.Options{
		Kubeconfig: e.Kind.Kubeconfig(), Scenario: own.Scenario, Image: own.Image, Tiers: catalogue.Tiers(), Progress: e.Progress,
		RebootCommand: rebootCommand, OutageCommand: "'" + script + "'",
	})
	if err != nil {
		return err
	}
	hooked.Times = own.Times
	var reports [2][]report.Report
	for i, target := range []cluster.Target{own, hooked} {
		one, err := verdicts(ctx, target)
		if err != nil {
			return err
		}
		reports[i] = []report.Report{one}
	}
	difference := report.Diff(reports[0], reports[1])
	difference.Increases = nil // of figures
	var text bytes.Buffer
	if err := difference.WriteText(&text); err != nil {
		return err
	}
	if len(difference.Regressions)+len(difference.Fixes)+len(difference.Added)+len(difference.Others) > 0 {
		return fmt.Errorf("%w, by the provider and by commands:\n%s", errVerdicts, text.String())
	}
	counts := reports[1][0].Counts
	return record(e, "same-verdicts", []bench.Row{{
		What:     "All tiers of the suite by a kubeconfig and commands",
		Measured: fmt.Sprintf("%d passed, %d skipped, 0 verdicts differ from those with the provider's acts", counts[report.Passed], counts[report.Skipped]),
		Bound:    "none differs", Compared: "-", Held: true,
	}})
}

func verdicts(ctx context.Context, target cluster.Target) (done report.Report, err error) {
	run, err := runner.New(ctx, target, runner.Selection{Tiers: catalogue.Tiers()})
	if err != nil {
		return report.Report{}, err
	}
	defer func() { err = errors.Join(err, run.Close(ctx)) }()
	if err := run.Start(ctx); err != nil {
		return report.Report{}, err
	}
	for _, check := range catalogue.All() {
		if _, err := run.Result(ctx, check.ID); err != nil {
			return report.Report{}, err
		}
	}
	return run.Report(), nil
}
