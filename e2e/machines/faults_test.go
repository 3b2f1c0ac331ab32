// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// Each time the machine continues by itself when the fault is removed, or prints what a person has to do.
var _ = Describe("Bootstrap in place, with faults", Ordered, Label("in-place-faults"), func() {
	m := &machine{way: "in-place-faults", command: postReboot}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))
	limit := SpecTimeout(stepTimeout)

	It("has configs, one of which with certificates of five minutes", func(ctx SpecContext) {
		m.configInPlace(ctx, func() {})
		m.write(map[string]string{"short/install-config.yaml": string(m.read("sno/install-config.yaml"))})
		m.createConfigs(ctx, "short", "--validity", brief.String())
		m.makeLive(ctx, liveConfig)
	}, limit)

	It("prints without a network the URL that Ignition cannot reach, and retries", func(ctx SpecContext) {
		Expect(m.live.DisconnectNetwork(ctx)).To(Succeed())
		Expect(m.live.PowerOn(ctx)).To(Succeed())
		Eventually(ctx, m.live.Console).Should(ContainSubstring("GET error: Get \"" + m.program))
		Expect(m.live.ConnectNetwork(ctx)).To(Succeed())
		Expect(m.live.WaitBooted(ctx)).To(Succeed())
	}, limit)

	It("starts a control plane while the network is down", func(ctx SpecContext) {
		// A small file system stands in for the full disk of the next spec.
		execute(ctx, m.live, "mount -t tmpfs -o size=1M none /disk/boot")
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			s, err := statusOf(ctx, m.live, bootstrapInPlace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Phases).To(ContainElement(And(HaveField("Name", "api"), HaveField("State", Not(Equal("Pending"))))))
		}).Should(Succeed())
		execute(ctx, m.live, "ip link set dev eth0 down")
		_, err := m.live.Exec(ctx, "curl", "--silent", "--max-time", "5", "--output", "/dev/null", m.program)
		Expect(err).To(HaveOccurred(), "the network is still up")
		// A network manager restores the default route with the link.
		execute(ctx, m.live, "ip link set dev eth0 up && ip route replace default via "+m.gateway)
	}, limit)

	It("reports a full disk with an advice, and leaves it not bootable", func(ctx SpecContext) {
		waitForError(ctx, m.live, "No space left on device")
		execute(ctx, m.live, "test ! -e /disk/boot/bootable")
	}, limit)

	It("continues once the disk has room, and restarts the machine", func(ctx SpecContext) {
		execute(ctx, m.live, "umount /disk/boot")
		Expect(m.live.WaitPoweredOff(ctx)).To(Succeed())
		m.removeLive()
	}, limit)

	It("refuses a truncated config in Ignition, and starts nothing", func(ctx SpecContext) {
		// The real installer passes through this state: the disk is bootable before the config is complete.
		m.runOnDisk(ctx, "cd boot/ignition && cp --archive config.ign whole && truncate --size=-1000 config.ign")
		Expect(m.Start(ctx)).NotTo(Succeed())
		Expect(m.Console(ctx)).To(ContainSubstring("Ignition failed: config is not valid"))
		m.runOnDisk(ctx, "mv boot/ignition/whole boot/ignition/config.ign")
	}, limit)

	It("reports a damaged snapshot with an advice, and does not start etcd, in particular not with an empty database", func(ctx SpecContext) {
		m.runOnDisk(ctx, damage)
		Expect(m.Start(ctx)).To(Succeed())
		m.wait(ctx, check{"etcd-restore has failed and prints an advice", `systemctl is-failed --quiet etcd-restore.service && ` +
			`journalctl --boot --unit etcd-restore.service --output cat | grep -q 'its only snapshot is damaged: install the node again'`},
			check{"the kubelet does not run", "! systemctl is-active --quiet kubelet.service"},
			check{"etcd has no data", "! test -e /var/lib/etcd/member"})
		Expect(m.PowerCut(ctx)).To(Succeed())
	}, limit)

	It("reports expired certificates of the config with an advice, does not retry, and leaves the disk not bootable", func(ctx SpecContext) {
		Expect(m.WipeDisk(ctx)).To(Succeed())
		const config = "short/bootstrap-in-place-for-live-iso.ign"
		live := m.makeLive(ctx, config)
		made := suite.Must(os.Stat(m.path(config)))
		By("waiting until the certificates have expired")
		suite.Elapse(ctx, time.Until(made.ModTime().Add(brief)))
		Expect(live.Start(ctx)).To(Succeed())
		waitForError(ctx, live, "the certificates of the config have ended")
		// The unit does not restart, because only a person can change that.
		execute(ctx, live, "systemctl is-failed --quiet bootkube.service")
		Expect(m.diskState(ctx)).To(Equal(notBootable))
	}, SpecTimeout(2*stepTimeout))
})

func (m *machine) runOnDisk(ctx context.Context, command string) {
	GinkgoHelper()
	suite.Must(m.ExecOnDisk(ctx, command))
}

// waitForError waits until the command of the live system reports this error, and an advice.
func waitForError(ctx context.Context, live *nodemachine.Machine, with string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (status, error) { return statusOf(ctx, live, bootstrapInPlace) }).
		Should(And(HaveField("Error", ContainSubstring(with)), HaveField("Advice", Not(BeEmpty()))))
}

// damage changes a byte of etcd's snapshot after Ignition has written it and before etcd-restore reads it.
const damage = `mkdir -p etc/systemd/system/etcd-restore.service.d
cat >etc/systemd/system/etcd-restore.service.d/damage.conf <<'EOF_'
[Service]
ExecStartPre=/bin/sh -c 'printf x | dd of=/var/lib/sno-install/etcd-snapshot.db bs=1 seek=20000 conv=notrunc'
EOF_
`
