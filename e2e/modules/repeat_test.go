// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework/suite"
)

var (
	runs    = flag.Int("runs", 3, "how often the scheduled tier is repeated on one cluster")
	capture = flag.String("capture", "", "folder of YAML files named after scenarios, which are updated from clusters")

	undisturbed = tiers(catalogue.Static, catalogue.Scheduled)
)

var _ = Describe("The suite on a correct cluster", Label(suite.Long), func() {
	It("has the same results again and again", func(ctx SpecContext) {
		s := startSystem(ctx, embeddedtarget.Options{Scenario: "none-sno-day1-worker", Variant: embeddedtarget.SNO})
		var first map[string]report.Status
		for run := range *runs {
			results := byID(s.run(s.target, undisturbed))
			for id, result := range results {
				Expect(result.Status).NotTo(Or(Equal(report.Failed), Equal(report.Inconclusive)), "run %d: %s: %s %+v %+v", run+1, id, result.Reason, result.Evidence, result.Controls)
			}
			if run == 0 {
				first = statuses(results)
			}
			Expect(statuses(results)).To(Equal(first), "run %d", run+1)
		}
	})

	// R-OPS-4. The table of scenarios has an outage of a few seconds. Both classes of leader election have an entry, since
	// their durations differ.
	DescribeTable("passes after an outage in which all six controllers keep their Leases,", func(ctx SpecContext, name string, length time.Duration) {
		times := cluster.SimulatedTimes()
		times.Outage = length
		s := startSystem(ctx, embeddedtarget.Options{Scenario: name, Variant: embeddedtarget.SNO, Times: times})
		result := s.result(s.target, "SNO-TOP-011", func() {})
		Expect(result.Status).To(Equal(report.Passed), "%s %+v", result.Reason, result.Evidence)
		leases := 0
		for _, e := range result.Evidence {
			if e.Field == "spec.holderIdentity" {
				leases++
			}
		}
		Expect(leases).To(BeNumerically(">=", 6))
		AddReportEntry("figures", result.Figures)
		Expect(s.target.ControlPlaneOrigin).NotTo(BeEmpty())
	},
		Entry("of two minutes on one node", "none-sno", 2*time.Minute),
		Entry("of one minute on three nodes", "compact", time.Minute))
})

var _ = It("The clusters of the catalogue's unit tests are updated", Label("capture"), func(ctx SpecContext) {
	if *capture == "" {
		Skip("needs -capture")
	}
	files := suite.Must(filepath.Glob(filepath.Join(*capture, "*.yaml")))
	for _, file := range files {
		o := patient(strings.TrimSuffix(filepath.Base(file), ".yaml"), embeddedtarget.SNO)
		o.RealMinReadySeconds = true
		state := suite.Must(cluster.Read(ctx, startSystem(ctx, o).kube, nil))
		for i := range state.Pods {
			state.Pods[i].ManagedFields, state.Pods[i].Spec.Volumes, state.Pods[i].Spec.Containers = nil, nil, nil
		}
		for i := range state.Nodes {
			state.Nodes[i].ManagedFields, state.Nodes[i].Status.Conditions = nil, nil
		}
		text := suite.Must(yaml.Marshal(state))
		Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	}
})
