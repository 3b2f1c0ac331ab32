// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/extension"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/scenario"
)

// skippedByExisting are the checks that a kubeconfig and commands cannot run, with the reason.
var skippedByExisting = map[string]string{
	"SNO-APP-004": "the provider does not support changes of the topology",
	"SNO-AUT-009": "the provider does not support changes of the topology",
	"SNO-CON-010": "the provider does not support changes of the topology",
	"SNO-ETC-005": "the provider does not support changes of the topology",
	"SNO-ING-011": "the provider does not support changes of the topology",
	"SNO-MCO-001": "the provider does not support drain requests of nodes",
	"SNO-MCO-002": "the provider does not support drain requests of nodes",
}

// machines is an HTTP server that acts on the machines of a cluster, as a management controller does.
func (s *system) machines() *httptest.Server {
	GinkgoHelper()
	mux := http.NewServeMux()
	answer := func(act func(context.Context, *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := act(r.Context(), r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux.HandleFunc("POST /reboot/{node}", answer(func(ctx context.Context, r *http.Request) error {
		return s.target.RestartNode(ctx, r.PathValue("node"))
	}))
	mux.HandleFunc("POST /outage/{seconds}", answer(func(ctx context.Context, r *http.Request) error {
		length, err := time.ParseDuration(r.PathValue("seconds") + "s")
		if err != nil {
			return err
		}
		return s.target.Outage(ctx, length)
	}))
	mux.HandleFunc("POST /upgrade", answer(func(ctx context.Context, _ *http.Request) error { return s.target.Upgrade(ctx) }))
	server := httptest.NewServer(mux)
	DeferCleanup(server.Close)
	return server
}

// hooked returns the options of a person with a kubeconfig and commands.
func (s *system) hooked(machines string) existing.Options {
	const post = "curl --fail --silent --show-error --request POST "
	return existing.Options{
		Kubeconfig:     s.Cluster.KubeconfigPath(),
		Tiers:          catalogue.Tiers(),
		RebootCommand:  `sh -c '` + post + machines + `/reboot/$0'`,
		OutageCommand:  post + machines + `/outage/$SNO_OUTAGE_SECONDS`,
		UpgradeCommand: post + machines + `/upgrade`,
		Progress:       GinkgoWriter,
	}
}

// byExisting connects with these options, and with the times of simulated nodes.
func byExisting(ctx context.Context, o existing.Options) (cluster.Target, error) {
	target, err := existing.Target(ctx, o)
	target.Times = cluster.SimulatedTimes()
	target.Times.Settle = steps.Timeout
	return target, err
}

var _ = It("A kubeconfig and commands give the verdicts of the provider, and the cluster recovers with traffic", Label(suite.Long), func(ctx SpecContext) {
	s := startSystem(ctx, patient("none-sno", embeddedtarget.SNO))
	machines := s.machines()
	hooked, err := byExisting(ctx, s.hooked(machines.URL))
	Expect(err).NotTo(HaveOccurred())
	want, got := byID(s.run(s.target, tiers(catalogue.Tiers()...))), byID(s.run(hooked, tiers(catalogue.Tiers()...)))
	for id, reason := range skippedByExisting {
		if got[id].Status != report.NotApplicable {
			Expect(got[id]).To(And(HaveField("Status", report.Skipped), HaveField("Reason", reason)), id)
		}
		delete(want, id)
		delete(got, id)
	}
	Expect(statuses(got)).To(Equal(statuses(want)))
	for _, id := range []string{"SNO-TOP-010", "SNO-TOP-011", "SNO-TOP-012", "SNO-TOP-014"} {
		Expect(got[id].Status).To(Equal(report.Passed), "%s: %s, %+v", id, got[id].Reason, got[id].Evidence)
	}
	s.recovers(s.hooked(machines.URL))
})

// recovers runs `sno-tests recover` with the commands. With a command that does nothing it fails.
// No simulated node has traffic, so the test's application answers only while the router is available.
func (s *system) recovers(hooks existing.Options) {
	GinkgoHelper()
	Expect(s.Cluster.InstallCRDs(s.ctx, []string{"route/v1/zz_generated.crd-manifests/routes.crd.yaml"}, nil)).To(Succeed())
	scheme := runtime.NewScheme()
	Expect(routev1.Install(scheme)).To(Succeed())
	kube, err := client.New(s.Cluster.RESTConfig(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	const namespace, name = "openshift-ingress-canary", "canary" // where the canary of the scenario is
	Expect(kube.Create(s.ctx, &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       routev1.RouteSpec{Host: "canary.apps.invalid", To: routev1.RouteTargetReference{Kind: "Service", Name: name}},
	})).To(Succeed())
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		live := &appsv1.Deployment{}
		err := s.kube.Get(r.Context(), client.ObjectKey{Namespace: scenario.RouterNamespace, Name: router}, live)
		if err != nil || live.Status.AvailableReplicas == 0 || r.Host != "canary.apps.invalid" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	DeferCleanup(application.Close)
	for _, test := range []struct {
		name, reboot string
		code         int
		steps        []string
		problem      string
	}{
		{"commands", hooks.RebootCommand, 0, []string{"the router is deleted", "the control plane reboots", "the cluster is upgraded"}, ""},
		{"a reboot that does not happen", "true", 1, []string{"the router is deleted", "the control plane reboots"}, "status.nodeInfo.bootID is the same as before"},
	} {
		By(test.name)
		folder := GinkgoT().TempDir()
		var out, progress bytes.Buffer
		code := extension.Program{Out: &out, Err: &progress, Provider: byExisting}.Main(s.ctx, []string{
			"recover", "-o", folder, "--kubeconfig", hooks.Kubeconfig, "--reboot-command", test.reboot, "--upgrade-command", hooks.UpgradeCommand,
			"--route-address", application.Listener.Addr().String(), "--tiers", "static",
		})
		Expect(code).To(Equal(test.code), "%s\n%s", &progress, &out)
		Expect(progress.String()).To(ContainSubstring(test.problem))
		for _, file := range []string{"before.yaml", "after.yaml"} {
			reports, err := report.ReadFiles(filepath.Join(folder, file))
			Expect(err).NotTo(HaveOccurred())
			Expect(reports).To(HaveLen(1), file)
			if file == "after.yaml" {
				Expect(reports[0].Measurements).To(HaveLen(len(test.steps)))
			}
		}
		for _, step := range test.steps {
			Expect(strings.Count(out.String(), step)).To(Equal(1), "the requests while %s:\n%s", step, &out)
		}
		Expect(out.String()).NotTo(ContainSubstring("regression"))
	}
}
