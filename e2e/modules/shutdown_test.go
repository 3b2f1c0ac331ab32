// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
)

// All specs in one process: the loader, whose package is large, is built once.
var _ = Describe("The kubelet's own loader", Label(suite.Smoke), Ordered, func() {
	var loader string
	BeforeAll(func(ctx SpecContext) {
		loader = filepath.Join(GinkgoT().TempDir(), "kubelet-config")
		// Only a file, not a package, may import the Kubernetes of testcluster/kube from here.
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", loader, filepath.Join("e2e", "modules", "testdata", "kubelet-config", "main.go"))
		build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), GinkgoWriter
		Expect(build.Run()).To(Succeed())
	})

	DescribeTable("reads the periods of a graceful shutdown, and logind waits as long, by Ignition's own parser",
		// kubelet is the total and the part for critical pods in seconds, as its loader reads them.
		func(ctx SpecContext, ordinary, critical int, bound time.Duration, kubelet string) {
			pods := make([]corev1.Pod, 2)
			for i, grace := range []int{ordinary, critical} {
				pods[i].Spec.NodeName, pods[i].Spec.TerminationGracePeriodSeconds = "master-0", ptr.To(int64(grace))
			}
			pods[1].Spec.Priority = ptr.To[int32](2_000_001_000)
			configuration, file, content := steps.GracefulShutdown(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-0"}}, pods, bound)
			Expect(readByKubelet(ctx, loader, configuration)).To(Equal(kubelet))
			total, _, _ := strings.Cut(kubelet, " ")
			Expect(file).To(HavePrefix("/etc/systemd/logind.conf.d/"))
			Expect(string(content)).To(Equal("[Login]\nInhibitDelayMaxSec=" + total + "\n"))
		},
		Entry("of ordinary pods", 30, 30, time.Duration(0), "60 30"),
		Entry("of pods without any", 0, 0, time.Duration(0), "60 30"),
		Entry("of slower ones", 45, 31, time.Duration(0), "120 60"),
		Entry("of a pod that wants an hour", 3600, 30, time.Duration(0), "180 30"),
		Entry("of pods that want forever", 1<<40, 1<<40, time.Duration(0), "180 90"),
		Entry("with the smallest bound", 1, 3600, machineconfig.MinShutdownBound, "10 5"),
		Entry("with a bound of a day", 3600, 3600, 24*time.Hour, "7200 3600"),
	)

	DescribeTable("refuses",
		func(ctx SpecContext, configuration map[string]any) {
			_, err := readByKubelet(ctx, loader, configuration)
			Expect(err).To(MatchError(ContainSubstring("kubelet-config: ")), "the program says so, not the compiler")
		},
		Entry("critical pods longer than all", map[string]any{"shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "20s"}),
		Entry("less than a second", map[string]any{"shutdownGracePeriod": "10ms"}),
		Entry("no duration", map[string]any{"shutdownGracePeriod": "soon"}),
		Entry("a number", map[string]any{"shutdownGracePeriod": 60}),
	)
})

// readByKubelet returns what the kubelet's loader reads of a configuration. The operator merges the fields into its
// kubelet.conf, which needs at least some others.
func readByKubelet(ctx SpecContext, loader string, configuration map[string]any) (string, error) {
	GinkgoHelper()
	configuration["apiVersion"], configuration["kind"], configuration["failCgroupV1"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", false
	text := suite.Must(json.Marshal(configuration))
	file := filepath.Join(GinkgoT().TempDir(), "kubelet.conf")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	complaints := gbytes.NewBuffer()
	run := exec.CommandContext(ctx, loader, file)
	run.Stderr = complaints
	output, err := run.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaints.Contents())
	}
	return strings.TrimSpace(string(output)), err
}
