// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/vm"
)

// The specs of virtual machines are those of containers, for what a container cannot show: firmware, a boot loader, all
// stages of Ignition in the initramfs, a live ISO, the partitions of a disk, writes that a power cut loses, a real network.
const virtualMachine = "vm"

const (
	// vmTimeout limits a spec in software, on a busy machine.
	vmTimeout = 2 * time.Hour
	// vmPoll is how often a condition is read there.
	vmPoll = 5 * time.Second
	// virtualDisk is as large as preflight wants it. The file is sparse.
	virtualDisk = 101 << 30
	// vmNetwork is that of QEMU, in which this machine's loopback address is vmHost.
	vmNetwork, vmHost = "10.0.2.0/24", "10.0.2.2"
)

// virtual is a virtual machine with the way in which it is installed.
type virtual struct {
	*vm.Machine
	site

	way    string
	image  vm.Image
	config vm.Config
}

// setUp prepares the way. At the end of the container that calls it the machine is removed, and its console is kept if a
// spec has failed.
func (v *virtual) setUp(ctx context.Context) {
	oldPoll, oldInterval := poll, measureInterval
	poll, measureInterval = vmPoll, vmPoll
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultEventuallyTimeout(vmTimeout)
	lifetime, end := context.WithCancel(context.Background())
	DeferCleanup(func() error {
		end()
		poll, measureInterval = oldPoll, oldInterval
		SetDefaultEventuallyPollingInterval(poll)
		SetDefaultEventuallyTimeout(stepTimeout)
		if v.Machine == nil {
			return nil
		}
		return v.Delete()
	})
	DeferCleanup(func(ctx context.Context) {
		if v.Machine != nil && CurrentSpecReport().Failed() {
			v.keepLogs(ctx)
		}
	}, NodeTimeout(2*time.Minute))

	v.gateway, v.network = "127.0.0.1", vmNetwork
	v.prepareSite(ctx, filepath.Join(suite.Out(), v.way))
	v.serve(lifetime)
	v.program = strings.Replace(v.program, v.gateway, vmHost, 1)
	var err error
	v.image, err = vm.EnsureNode(ctx, suite.Must(engine.Find(ctx)), image, GinkgoWriter)
	if errors.Is(err, vm.ErrMissing) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(v.folder, 0o755)).To(Succeed())
	key, authorized, err := vm.NewKey(v.path("key"))
	Expect(err).NotTo(HaveOccurred())
	v.config = vm.Config{
		Name: v.way, Folder: v.path("machine"), DiskSize: virtualDisk, Memory: 4096, Key: key, Forward: []int{apiPort}, Progress: GinkgoWriter,
	}
	v.write(map[string]string{
		"sno/install-config.yaml":  strings.Replace(fmt.Sprintf(installConfig, vmNetwork), "/dev/disk0", "/dev/vda", 1) + "sshKey: " + authorized + "\n",
		"sno/manifests/site.yaml":  siteManifest,
		"extra/files/etc/hostname": hostname + "\n",
		"live/files/etc/hostname":  hostname + "\n",
	})
}

const apiPort = 6443

func (v *virtual) create() {
	GinkgoHelper()
	v.Machine = suite.Must(vm.Create(v.config))
}

func (v *virtual) keepLogs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if summary, err := v.Exec(ctx, "sh", "-c", failureSummary); err == nil {
		fmt.Fprintf(GinkgoWriter, "State of %s:\n%s\n", v.way, summary)
	}
	to := filepath.Join(suite.Artifacts(), v.way+"-console.log")
	err := cmp.Or(os.MkdirAll(suite.Artifacts(), 0o755), os.Link(v.path("machine/console.log"), to))
	fmt.Fprintf(GinkgoWriter, "The console of %s is in %s: %v\n", v.way, to, err)
}

func (v *virtual) kubeconfig() *clientcmdapi.Config {
	return v.kubeconfigAt(adminKubeconfig, func(string) string { return v.Forwarded(apiPort) })
}

// boot turns the machine on, and returns when a command of sno-install has ended on it and a pod runs.
func (v *virtual) boot(ctx context.Context, command string) {
	began := time.Now()
	Expect(v.PowerOn(ctx)).To(Succeed())
	var times bootTimes
	var used time.Duration
	inParallel(ctx, func(ctx context.Context) {
		program := suite.Must(os.ReadFile(v.install))
		for path, content := range map[string][]byte{"/opt/check/sno-install": program, "/opt/check/hostile.yaml": []byte(hostileRequests())} {
			Eventually(ctx, func(ctx context.Context) error {
				_, err := v.Pipe(ctx, bytes.NewReader(content), "install", "-D", "--mode=755", "/dev/stdin", path)
				return err
			}).Should(Succeed())
		}
		waitFor(ctx, v, createHostile)
	}, func(ctx context.Context) {
		_, err := follow(ctx, v, command)
		Expect(err).NotTo(HaveOccurred())
	}, func(ctx context.Context) {
		times = waitForBoot(ctx, began, clientOf(v.kubeconfig()))
		used = suite.Must(v.Processor())
	})
	recordInstallation("Virtual machine, "+v.way+", from power-on to a running pod", "%s of processors, %s", seconds(used), seconds(times.pod))
}

// passChecks loads the image of the web server, and passes checks.
func (v *virtual) passChecks(ctx context.Context, checks []check) {
	binary := suite.Must(programs.Build(ctx, programs.WebServer, GinkgoWriter))
	name := programs.WebServer.Name
	archive := v.path(name + ".tar")
	Expect(images.Write(archive, images.Image{Name: webImage, Files: map[string]string{name: binary}, Entrypoint: []string{"/" + name}})).To(Succeed())
	content := suite.Must(os.ReadFile(archive))
	suite.Must(v.Pipe(ctx, bytes.NewReader(content), "ctr", "--namespace=k8s.io", "images", "import", "--digests", "-"))
	waitFor(ctx, v, checks...)
}

// inspection keeps the machine for interactive use until Ctrl-C, with -inspect.
func (v *virtual) inspection() {
	if !*inspect {
		return
	}
	It("runs until Ctrl-C", func(ctx SpecContext) {
		kubeconfig := filepath.Join(suite.Out(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*v.kubeconfig(), kubeconfig)).To(Succeed())
		host, port, err := net.SplitHostPort(v.Forwarded(vm.SSHPort))
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(GinkgoWriter, "\nThe node runs until Ctrl-C. Use it in another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get pods --all-namespaces\n"+
			"  ssh -i %s -p %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null core@%s\n\n", kubeconfig, v.path("key"), port, host)
		<-ctx.Done()
	})
}

// onDisk holds on a machine with an installed image.
var onDisk = []check{
	{"/usr is read-only", "! touch /usr/check 2>/dev/null"},
	{"the first boot is over", "test -e /boot/vmlinuz && test ! -e /boot/ignition.firstboot"},
}

var _ = Describe("All in one, on a virtual machine", Ordered, Label(virtualMachine, "vm-all-in-one", suite.Long), func() {
	v := &virtual{way: "vm-all-in-one"}
	checks := everywhere(allInOne, runtimeIs("containerd"), onDisk)
	BeforeAll(v.setUp, NodeTimeout(vmTimeout))

	It("boots by BIOS from a disk, with a config that Ignition reads in the initramfs", func(ctx SpecContext) {
		v.createAllInOne(ctx)
		v.boot(ctx, aiokube)
	}, SpecTimeout(vmTimeout))

	It("is a complete node", func(ctx SpecContext) { v.passChecks(ctx, checks) }, SpecTimeout(vmTimeout))
	v.inspection()

	It("is the same after a power cut", func(ctx SpecContext) {
		Expect(v.PowerCut(ctx)).To(Succeed())
		Expect(v.PowerOn(ctx)).To(Succeed())
		waitFor(ctx, v, checks...)
	}, SpecTimeout(vmTimeout))
})

// createAllInOne makes a machine whose firmware hands the config to Ignition.
func (v *virtual) createAllInOne(ctx context.Context, more ...string) {
	v.snoInstall(ctx, append([]string{"create", "aio-ignition", "--dir", "sno", "--kubernetes-version", kubernetesVersion(), "--program", v.program,
		"--extra", "extra", "--runtime", "containerd"}, more...)...)
	v.config = v.image.Node(v.config)
	v.config.Handed = map[string]string{vm.NodeConfig: v.path("sno/aio.ign")}
	v.create()
}

// bondNetwork is a bond of two cards, by their addresses, with a VLAN.
const bondNetwork = `interfaces:
- {name: left, type: ethernet, identifier: mac-address, mac-address: "52:54:00:00:00:0a"}
- {name: right, type: ethernet, identifier: mac-address, mac-address: "52:54:00:00:00:0b"}
- name: bond0
  type: bond
  link-aggregation: {mode: active-backup, options: {miimon: 100}, port: [left, right]}
  ipv4: {enabled: true, dhcp: false, address: [{ip: 10.0.2.15, prefix-length: 24}]}
- name: bond0.300
  type: vlan
  vlan: {base-iface: bond0, id: 300}
  ipv4: {enabled: true, dhcp: false, address: [{ip: 198.51.100.10, prefix-length: 24}]}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 10.0.2.2, next-hop-interface: bond0}
  - {destination: 203.0.113.0/24, next-hop-address: 198.51.100.1, next-hop-interface: bond0.300}
dns-resolver:
  config: {server: [10.0.2.3], search: [example.com]}
`

var bonded = []check{
	{"both cards are ports of the bond", `test "$(wc -w </sys/class/net/bond0/bonding/slaves)" = 2 && grep -q ^active-backup /sys/class/net/bond0/bonding/mode`},
	{"the addresses are the static ones", `test "$(ip -4 -brief address show scope global | grep -v ^veth | awk '{ print $1, $3 }' | sort | tr '\n' ' ')" = ` +
		`"bond0 10.0.2.15/24 bond0.300@bond0 198.51.100.10/24 "`},
	{"the routes are the static ones", `ip route show 203.0.113.0/24 | grep -q 'via 198.51.100.1 dev bond0.300' && ` +
		`test "$(ip route show default | grep -c .)" = 1 && ip route show default | grep -q 'via 10.0.2.2 dev bond0'`},
	{"names are resolved by the static server", `grep -qx 'nameserver 10.0.2.3' /etc/resolv.conf && grep -q '^search example.com' /etc/resolv.conf`},
}

var _ = Describe("All in one, with a static network", Ordered, Label(virtualMachine, "vm-network", suite.Long), func() {
	v := &virtual{way: "vm-network"}
	checks := everywhere(allInOne, bonded)
	BeforeAll(v.setUp, NodeTimeout(vmTimeout))

	It("boots with a bond of two cards and a VLAN, from an NMState document", func(ctx SpecContext) {
		v.write(map[string]string{"network.yaml": bondNetwork})
		v.config.NICs = []string{"52:54:00:00:00:0a", "52:54:00:00:00:0b"}
		v.createAllInOne(ctx, "--network-config", "network.yaml")
		v.boot(ctx, aiokube)
	}, SpecTimeout(vmTimeout))

	It("is a complete node", func(ctx SpecContext) { v.passChecks(ctx, checks) }, SpecTimeout(vmTimeout))
	v.inspection()

	It("is the same with one card", func(ctx SpecContext) {
		execute(ctx, v, `ip link set dev "$(cat /sys/class/net/bond0/bonding/active_slave)" down`)
		waitFor(ctx, v, checks...)
	}, SpecTimeout(vmTimeout))
})

var _ = Describe("Bootstrap in place, on a virtual machine", Ordered, Label(virtualMachine, "vm-in-place", suite.Long), func() {
	v := &virtual{way: "vm-in-place"}
	checks := everywhere(installed, onDisk)
	BeforeAll(v.setUp, NodeTimeout(vmTimeout))

	It("boots by UEFI from a live ISO with a config, which installs the disk", func(ctx SpecContext) {
		v.snoInstall(ctx, "create", "single-node-ignition-config", "--dir", "sno", "--profile", "kubernetes", "--kubernetes-version", kubernetesVersion(),
			"--program", v.program, "--extra", "extra", "--extra-live", "live", "--iso", v.image.ISO(), "--out", "node.iso")
		v.config.CDROM, v.config.UEFI = v.path("node.iso"), true
		v.create()
		v.bootLive(ctx)
	}, SpecTimeout(vmTimeout))

	It("boots a node from the disk without the medium", func(ctx SpecContext) {
		v.RemoveMedium()
		v.boot(ctx, postReboot)
	}, SpecTimeout(vmTimeout))

	It("is a complete node with the objects of the live system", func(ctx SpecContext) { v.passChecks(ctx, checks) }, SpecTimeout(vmTimeout))
	v.inspection()

	It("is the same after a restart", func(ctx SpecContext) {
		Expect(v.Reboot(ctx)).To(Succeed())
		waitFor(ctx, v, checks...)
	}, SpecTimeout(vmTimeout))
})

// bootLive boots the live system, and returns when that has restarted the machine.
func (v *virtual) bootLive(ctx context.Context) {
	Expect(v.PowerOn(ctx)).To(Succeed())
	running, off := context.WithCancel(ctx)
	defer off()
	go func() { _, _ = follow(running, v, bootstrapInPlace) }() // the machine is off before the command has ended
	Expect(v.WaitPoweredOff(ctx)).To(Succeed(), "the live system restarts the machine")
}
