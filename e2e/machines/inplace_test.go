// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/kubelets"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// Bootstrap in place is a live system, the disk that it writes, and the node that boots from it (R-BIP-25, R-BIP-26).
var _ = Describe("Bootstrap in place", Ordered, Label("in-place"), func() {
	m := &machine{way: "in-place", command: postReboot, checks: everywhere(installed, takenOver())}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))

	It("has configs, with what a release payload and a machine-config server need", func(ctx SpecContext) {
		m.configInPlace(ctx, func() {
			m.machineConfigServer(ctx)
			m.payload(ctx)
		})
	}, SpecTimeout(stepTimeout))

	It("writes the disk in a live system, which then restarts the machine", func(ctx SpecContext) {
		began := time.Now()
		m.bootLive(ctx)
		suite.Record(suite.Installations, phaseRows("live", time.Since(began), m.phases)...)
	}, SpecTimeout(stepTimeout))

	It("boots a node from the disk, of which the operators take over the control plane", func(ctx SpecContext) {
		began := time.Now()
		m.boot(ctx, func(ctx context.Context) { put(ctx, m.Machine, versionFile, 0o644, m.read("version")) }, m.takeOver)
		suite.Record(suite.Installations, phaseRows("node", time.Since(began), m.phases)...)
		recordInstallation("Bootstrap in place, no API when the live system restarts into the node", "%s", seconds(m.api.reset()))
		recordInstallation("Bootstrap in place, configs", "live system %.1f KiB, installed node %.1f MiB",
			float64(suite.Must(os.Stat(m.path(liveConfig))).Size())/(1<<10), float64(m.number(ctx, "stat --format=%s /boot/ignition/config.ign"))/mebi)
	}, SpecTimeout(stepTimeout))

	It("is a complete node with the objects of the live system, and leaves no trace of the installation", m.passChecks, SpecTimeout(stepTimeout))
	m.inspection()

	It("is the same after a restart", func(ctx SpecContext) {
		recordInstallation("Bootstrap in place, no API when the node restarts", "%s", seconds(m.passChecksAfterRestart(ctx)))
		recordInstallation("Bootstrap in place, memory of the machine at rest", "%s", mebibytes(m.memory(ctx)))
	}, SpecTimeout(stepTimeout))

	It("runs all controllers as pods, and passes the static and scheduled tiers of the conformance suite", m.runModules, SpecTimeout(2*stepTimeout))

	Context("when a worker joins on day 2", func() {
		joinWorker(m)
		It("keeps the router on the control-plane node, also a new pod of it", m.keepsRouter, SpecTimeout(stepTimeout))
	})
})

const (
	bootstrapInPlace = "bootstrap-in-place"
	postReboot       = "post-reboot"
	liveConfig       = "sno/bootstrap-in-place-for-live-iso.ign"
)

var installed = []check{
	{"the installation has left nothing behind", "test ! -e /etc/systemd/system/post-reboot.service && /opt/check/sno-install check-leftovers"},
	{"the objects from before the restart exist", client + "get configmap site --namespace=default"},
}

// configInPlace makes the machine and its configs. lay writes further inputs.
func (m *machine) configInPlace(ctx context.Context, lay func()) {
	m.create(ctx, m.medium("firmware", ""))
	Expect(m.WipeDisk(ctx)).To(Succeed())
	lay()
	m.createConfigs(ctx, "sno")
}

func (m *machine) createConfigs(ctx context.Context, folder string, more ...string) {
	m.snoInstall(ctx, append([]string{"create", "single-node-ignition-config", "--dir", folder, "--profile", "kubernetes", "--kubernetes-version",
		kubernetesVersion(), "--program", m.program, "--extra", "extra", "--extra-live", "live"}, more...)...)
}

// makeLive makes a machine that boots the live medium. Its system is in memory, so each boot needs a new one.
func (m *machine) makeLive(ctx context.Context, config string) *nodemachine.Machine {
	m.removeLive()
	live := m.config
	live.Name, live.Network, live.Medium, live.InstallTarget = m.config.Name+"-live", m.config.Name, m.medium("iso", config), m.config.Name
	m.live = suite.Must(nodemachine.Create(ctx, live))
	return m.live
}

func (m *machine) removeLive() {
	if m.live != nil {
		Expect(m.live.Delete()).To(Succeed())
		m.live = nil
	}
}

// bootLive boots the live system, and returns when that has restarted the machine.
func (m *machine) bootLive(ctx context.Context) {
	live, began := m.makeLive(ctx, liveConfig), time.Now()
	Expect(live.Start(ctx)).To(Succeed())
	m.api.at(live.Address())
	m.followJournal(live)
	running, off := context.WithCancel(ctx)
	defer off()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		_ = m.follow(running, live, bootstrapInPlace) // the machine is off before the command has ended
	}()
	inParallel(running, func(ctx context.Context) {
		Expect(live.WaitPoweredOff(ctx)).To(Succeed(), "the live system restarts the machine")
		off()
	}, func(ctx context.Context) { m.rememberVersion(ctx, live) })
	<-followed
	m.uptime = time.Since(began)
	m.removeLive()
}

// runModules runs all controllers on the node, and the conformance suite. The controllers stay, and the stand-in
// operators run until the machine is removed.
func (m *machine) runModules(ctx context.Context) {
	config := m.client(m.Machine)
	config.QPS = -1
	signer := suite.Must(clientset(config).CoreV1().Secrets("openshift-kube-apiserver-operator").Get(ctx, "admin-kubeconfig-signer", metav1.GetOptions{}))
	e := &kubelets.Env{}
	m.stop = e.Stop
	e.Attach(m.lifetime, kubelets.Installed{
		Existing: embedded.Existing{Config: config, CACert: signer.Data["tls.crt"], CAKey: signer.Data["tls.key"]},
		Scenario: "none-sno", Provider: "sno-install", Node: hostname, Images: m.Containerd(),
	})
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			Expect(e.Logs(filepath.Join(suite.Artifacts(), "operators"))).To(Succeed())
		}
	})
	e.WaitSettled(ctx)
	folder := m.path("conformance")
	code := e.RunSuite(ctx, "--tiers", string(catalogue.Static)+","+string(catalogue.Scheduled), "-o", folder, "--artifacts", filepath.Join(folder, "artifacts"))
	Expect(code).To(BeZero(), "exit code of the conformance suite, with results in %s", folder)
}

const (
	routerNamespace = "openshift-ingress"
	masterRole      = "node-role.kubernetes.io/master"
)

// keepsRouter checks that the router is on the node of its DNS record although there is a worker, also when its pod is
// replaced (R-ING-3, R-ING-5).
func (m *machine) keepsRouter(ctx context.Context) {
	kube := clientset(m.client(m.Machine))
	m.wait(ctx, workerReady)
	before := routerPods(ctx, kube, nil)
	for uid, name := range before {
		Expect(kube.CoreV1().Pods(routerNamespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})).To(Succeed())
	}
	By("a deleted pod is replaced there")
	routerPods(ctx, kube, before)
}

// routerPods waits until the router is available on the control-plane node without its former pods, and returns its
// pods by UID.
func routerPods(ctx context.Context, kube *kubernetes.Clientset, former map[types.UID]string) map[types.UID]string {
	deployment := suite.Must(kube.AppsV1().Deployments(routerNamespace).Get(ctx, "router-default", metav1.GetOptions{}))
	Expect(deployment.Spec.Template.Spec.NodeSelector).To(HaveKey(masterRole))
	found := map[types.UID]string{}
	Eventually(ctx, func(g Gomega) {
		pods, err := kube.CoreV1().Pods(routerNamespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)})
		g.Expect(err).NotTo(HaveOccurred())
		clear(found)
		for _, pod := range pods.Items {
			g.Expect(former).NotTo(HaveKey(pod.UID), pod.Name)
			g.Expect(slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})).To(BeTrue(), "pod %s is Ready", pod.Name)
			g.Expect(pod.Spec.NodeName).To(Equal(hostname))
			found[pod.UID] = pod.Name
		}
		g.Expect(found).To(And(Not(BeEmpty()), HaveLen(int(*deployment.Spec.Replicas))))
	}).Should(Succeed())
	return found
}
