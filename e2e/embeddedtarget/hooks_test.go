// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	"github.com/solonode/sno/conformance/runner"
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
func (u *up) machines() *httptest.Server {
	u.t.Helper()
	mux := http.NewServeMux()
	answer := func(act func(context.Context, *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := act(r.Context(), r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux.HandleFunc("POST /reboot/{node}", answer(func(ctx context.Context, r *http.Request) error { return u.restartNode(ctx, r.PathValue("node")) }))
	mux.HandleFunc("POST /outage/{seconds}", answer(func(ctx context.Context, r *http.Request) error {
		length, err := time.ParseDuration(r.PathValue("seconds") + "s")
		if err != nil {
			return err
		}
		return u.outage(ctx, length)
	}))
	mux.HandleFunc("POST /upgrade", answer(func(ctx context.Context, _ *http.Request) error { return u.upgrade(ctx) }))
	server := httptest.NewServer(mux)
	u.t.Cleanup(server.Close)
	return server
}

// hooked returns the options of a person with a kubeconfig and commands.
func (u *up) hooked(machines string) existing.Options {
	const post = "curl --fail --silent --show-error --request POST "
	return existing.Options{
		Kubeconfig:     u.Cluster.KubeconfigPath(),
		Tiers:          catalogue.Tiers(),
		RebootCommand:  `sh -c '` + post + machines + `/reboot/$0'`,
		OutageCommand:  post + machines + `/outage/$SNO_OUTAGE_SECONDS`,
		UpgradeCommand: post + machines + `/upgrade`,
		Progress:       u.t.Output(),
	}
}

// byExisting connects with these options, and with the times of simulated nodes.
func byExisting(ctx context.Context, o existing.Options) (cluster.Target, error) {
	target, err := existing.Target(ctx, o)
	target.Times = cluster.SimulatedTimes()
	target.Times.Settle = waitTimeout
	return target, err
}

// TestHooks runs all tiers on one cluster, first with the acts of its provider, then by a kubeconfig and commands: the
// verdicts are the same. Then the cluster recovers with traffic.
func TestHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	u := startUp(t, "none-sno", SNO)
	own := u.target(options("none-sno", SNO))
	own.Stop = nil // the cluster is needed again
	machines := u.machines()
	hooked, err := byExisting(t.Context(), u.hooked(machines.URL))
	u.must(err)
	want, got := u.verdicts(own), u.verdicts(hooked)
	for id, reason := range skippedByExisting {
		if got[id].Status != report.Skipped && got[id].Status != report.NotApplicable || got[id].Status == report.Skipped && got[id].Reason != reason {
			t.Errorf("%s: %s, %q, want it to be skipped with %q", id, got[id].Status, got[id].Reason, reason)
		}
		delete(want, id)
		delete(got, id)
	}
	if diff := cmp.Diff(statuses(maps.Values(want)), statuses(maps.Values(got))); diff != "" {
		t.Errorf("by the provider (-), by a kubeconfig and commands (+):\n%s", diff)
	}
	for _, id := range []string{"SNO-TOP-010", "SNO-TOP-011", "SNO-TOP-012", "SNO-TOP-014"} {
		if got[id].Status != report.Passed {
			t.Errorf("%s: %s, %s, %+v", id, got[id].Status, got[id].Reason, got[id].Evidence)
		}
	}
	u.recovers(machines.URL)
}

func (u *up) verdicts(target cluster.Target) map[string]report.Result {
	u.t.Helper()
	run, err := runner.New(u.ctx, target, runner.Selection{Tiers: catalogue.Tiers()})
	u.must(err)
	defer func() { u.must(run.Close(u.ctx)) }()
	u.must(run.Start(u.ctx))
	all := map[string]report.Result{}
	for _, check := range catalogue.All() {
		result, err := run.Result(u.ctx, check.ID)
		u.must(err)
		all[check.ID] = result
	}
	return all
}

// recovers runs `sno-tests recover` with the commands. With a command that does nothing it fails.
// No simulated node has traffic, so the test's application answers only while the router is available.
func (u *up) recovers(machines string) {
	u.t.Helper()
	u.must(u.Cluster.InstallCRDs(u.ctx, []string{"route/v1/zz_generated.crd-manifests/routes.crd.yaml"}, nil))
	scheme := runtime.NewScheme()
	u.must(routev1.Install(scheme))
	kube, err := client.New(u.Cluster.RESTConfig(), client.Options{Scheme: scheme})
	u.must(err)
	const namespace, name = "openshift-ingress-canary", "canary" // where the canary of the scenario is
	u.must(kube.Create(u.ctx, &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       routev1.RouteSpec{Host: "canary.apps.invalid", To: routev1.RouteTargetReference{Kind: "Service", Name: name}},
	}))
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router := &appsv1.Deployment{}
		err := u.Cluster.Client().Get(r.Context(), client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-default"}, router)
		if err != nil || router.Status.AvailableReplicas == 0 || r.Host != "canary.apps.invalid" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer application.Close()
	hooks := u.hooked(machines)
	for _, test := range []struct {
		name, reboot string
		code         int
		steps        []string
		problem      string
	}{
		{"commands", hooks.RebootCommand, 0, []string{"the router is deleted", "the control plane reboots", "the cluster is upgraded"}, ""},
		{"a reboot that does not happen", "true", 1, []string{"the router is deleted", "the control plane reboots"}, "status.nodeInfo.bootID is the same as before"},
	} {
		u.t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			var out, progress bytes.Buffer
			code := extension.Program{Out: &out, Err: &progress, Provider: byExisting}.Main(t.Context(), []string{
				"recover", "-o", folder, "--kubeconfig", hooks.Kubeconfig, "--reboot-command", test.reboot, "--upgrade-command", hooks.UpgradeCommand,
				"--route-address", application.Listener.Addr().String(), "--tiers", "static",
			})
			if code != test.code || !strings.Contains(progress.String(), test.problem) {
				t.Errorf("exit code %d, want %d and %q:\n%s\n%s", code, test.code, test.problem, progress.String(), out.String())
			}
			t.Log(out.String())
			for _, file := range []string{"before.yaml", "after.yaml"} {
				reports, err := report.ReadFiles(filepath.Join(folder, file))
				if err != nil || len(reports) != 1 {
					t.Fatalf("%s: %d reports, %v", file, len(reports), err)
				}
				if file == "after.yaml" && len(reports[0].Measurements) != len(test.steps) {
					t.Errorf("measurements: %+v", reports[0].Measurements)
				}
			}
			for _, step := range test.steps {
				if strings.Count(out.String(), step) != 1 {
					t.Errorf("the requests while %s are not printed:\n%s", step, out.String())
				}
			}
			if strings.Contains(out.String(), "regression") {
				t.Error(out.String())
			}
		})
	}
}
