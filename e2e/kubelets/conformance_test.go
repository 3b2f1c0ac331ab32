// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	conformance "github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

const (
	// rebootCommand resets a node, which is its last argument.
	rebootCommand = "docker restart -t 0"

	// outageScript moves the manifest of the API server away and back, also if it is interrupted. The document of the suite
	// on a cluster of the reader does the same by ssh.
	outageScript = `#!/bin/sh
on() { docker exec NODE "$@"; }
trap 'on mv --no-clobber /etc/kubernetes/kube-apiserver.yaml /etc/kubernetes/manifests/ 2>/dev/null' EXIT
trap 'exit 1' TERM
on mv /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/ || exit
on sh -c "crictl ps --quiet --name '^kube-apiserver$' | xargs --no-run-if-empty crictl stop --timeout 1"
sleep "$SNO_OUTAGE_SECONDS"
`
)

var _ = It("The conformance suite passes with all controllers as pods, when the later workers have joined",
	Label(suite.Smoke), Serial, NodeTimeout(30*time.Minute), func(ctx SpecContext) {
		e, folder := cluster(ctx), suite.Out()
		By("Running the conformance suite")
		code := e.RunSuite(ctx, "--tiers", *tiers, "-o", folder, "--artifacts", filepath.Join(folder, "artifacts"))
		AddReportEntry(conformanceReport, folder, ReportEntryVisibilityFailureOrVerbose)
		Expect(code).To(BeZero(), "the exit code of the suite, results in %s", folder)
	})

var _ = It("The conformance suite has the same verdicts by a kubeconfig and commands", later, NodeTimeout(40*time.Minute), func(ctx SpecContext) {
	e := cluster(ctx)
	own := e.Target()
	script := filepath.Join(e.Cluster.Dir(), "outage")
	Expect(os.WriteFile(script, []byte(strings.ReplaceAll(outageScript, "NODE", nodes(e)[0])), 0o700)).To(Succeed())
	hooked, err := existing.Target(ctx, existing.Options{
		Kubeconfig: e.Kind.Kubeconfig(), Scenario: own.Scenario, Image: own.Image, Tiers: catalogue.Tiers(), Progress: GinkgoWriter,
		RebootCommand: rebootCommand, OutageCommand: "'" + script + "'",
	})
	Expect(err).NotTo(HaveOccurred())
	hooked.Times = own.Times
	byProvider, byCommands := verdicts(ctx, own), verdicts(ctx, hooked)
	difference := report.Diff([]report.Report{byProvider}, []report.Report{byCommands})
	difference.Increases = nil // of figures
	var text bytes.Buffer
	Expect(difference.WriteText(&text)).To(Succeed())
	for _, differ := range []any{difference.Regressions, difference.Fixes, difference.Added, difference.Others} {
		Expect(differ).To(BeEmpty(), "by the provider and by commands:\n%s", &text)
	}
	counts := byCommands.Counts
	record(suite.Row{
		What:     "All tiers of the suite by a kubeconfig and commands",
		Measured: fmt.Sprintf("%d passed, %d skipped, 0 verdicts differ from those with the provider's acts", counts[report.Passed], counts[report.Skipped]),
		Bound:    "none differs", Compared: "-", Held: true,
	})
})

// The test plan of the enhancement of added workers, as a person runs it on a cluster of others. The upgrade is that of a
// stand-in for the cluster-version-operator, with another image of the router (R-SUITE-6, R-SUITE-7, R-SUITE-8).
var _ = It("`sno-tests recover` finds traffic and the conformance suite restored after the router's deletion, a reboot and an upgrade", later, Serial, func(ctx SpecContext) {
	s := openSite(ctx, cluster(ctx, day2Workers))
	binary := suite.Must(programs.Build(ctx, programs.SNOTests, GinkgoWriter))
	s.route(ctx)
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		err := s.Upgrade(r.Context(), func(ctx context.Context) error {
			s.run(ctx, secondRouter)
			return nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	DeferCleanup(operator.Close)
	folder := filepath.Join(suite.Out(), "recover")
	cmd := exec.CommandContext(ctx, binary, "recover", "-o", folder, "--artifacts", filepath.Join(folder, "artifacts"),
		"--kubeconfig", s.Kind.Kubeconfig(), "--scenario", s.Scenario.Name,
		"--reboot-command", rebootCommand, "--upgrade-command", "curl --fail --silent --show-error "+operator.URL,
		"--route", metav1.NamespaceDefault+"/"+siteName, "--route-address", net.JoinHostPort(s.address, "443"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, GinkgoWriter
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	Expect(cmd.Run()).To(Succeed(), "%s", &output)
	after := suite.Must(report.ReadFiles(filepath.Join(folder, "after.yaml")))
	var rows []suite.Row
	for _, m := range after[0].Measurements {
		rows = append(rows, suite.Row{What: m.What, Measured: m.Measured, Bound: "answered again", Compared: "-", Held: m.Held})
	}
	record(rows...)
}, NodeTimeout(40*time.Minute))

func verdicts(ctx context.Context, target conformance.Target) report.Report {
	GinkgoHelper()
	started := suite.Must(runner.New(ctx, target, runner.Selection{Tiers: catalogue.Tiers()}))
	defer func() { Expect(started.Close(ctx)).To(Succeed()) }()
	Expect(started.Start(ctx)).To(Succeed())
	for _, check := range catalogue.All() {
		suite.Must(started.Result(ctx, check.ID))
	}
	return started.Report()
}

// route creates what a user of OpenShift creates for the application. The proxy of the site does not read it.
func (s *site) route(ctx context.Context) {
	GinkgoHelper()
	Expect(s.Cluster.InstallCRDs(ctx, []string{"route/v1/zz_generated.crd-manifests/routes.crd.yaml"}, nil)).To(Succeed())
	scheme := runtime.NewScheme()
	Expect(routev1.Install(scheme)).To(Succeed())
	kube := suite.Must(client.New(s.Cluster.RESTConfig(), client.Options{Scheme: scheme}))
	Expect(kube.Create(ctx, &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: siteName},
		Spec: routev1.RouteSpec{
			Host: "site.apps.example.com", To: routev1.RouteTargetReference{Kind: "Service", Name: siteName},
			TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge},
		},
	})).To(Succeed())
}
