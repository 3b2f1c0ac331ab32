// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// machine is the machine of a way of installing, with the live system and the worker that belong to it.
type machine struct {
	*nodemachine.Machine
	live, worker *nodemachine.Machine

	way string
	// runtime is the container runtime of an all-in-one node; empty is containerd. mirror is the address of the registry of
	// one without images.
	runtime, mirror string
	// command is the subcommand of sno-install that runs when the machine boots.
	command string
	// checks hold on the installed node, also after a restart.
	checks []check

	config nodemachine.Config
	site
	// lifetime ends when the machine is removed, and stop is called then.
	lifetime context.Context
	stop     func()
	api      outages
	// phases are those of the last command, and uptime is how long the machine had been on when it ended.
	phases []phase
	uptime time.Duration
}

// check is a command on the node that has to succeed eventually.
type check struct{ what, command string }

// phase is one that a command of sno-install has ended.
type phase struct {
	name string
	took time.Duration
}

// setUp prepares a machine, which create makes. At the end of the spec or of the container that calls it, the machine is
// removed, and before that its logs are kept if a spec has failed.
func (m *machine) setUp(ctx context.Context) {
	m.config = nodemachine.Config{Name: *prefix + "-" + m.way, Image: image, Progress: GinkgoWriter}
	lifetime, end := context.WithCancel(context.Background())
	m.lifetime, m.stop = lifetime, func() {}
	DeferCleanup(m.remove)
	DeferCleanup(func(ctx context.Context) {
		m.stop()
		end()
		if report := CurrentSpecReport(); report.Failed() && !report.State.Is(types.SpecStateInterrupted) {
			m.keepLogs(ctx)
		}
	}, NodeTimeout(time.Minute))
	m.prepareSite(ctx, filepath.Join(suite.Out(), m.way))
	go m.api.watch(lifetime)
}

// remove removes the machine, the live system and the worker, unless they are to be kept.
func (m *machine) remove() error {
	var errs []error
	for _, one := range []*nodemachine.Machine{m.worker, m.live, m.Machine} {
		switch {
		case one == nil:
		case suite.Keep():
			fmt.Fprintf(GinkgoWriter, "Kept: docker exec %[1]s crictl ps. To remove it: docker rm --force --volumes %[1]s; docker volume rm %[1]s; docker network rm %[2]s\n",
				one.Name(), m.config.Name)
		default:
			errs = append(errs, one.Delete())
		}
	}
	m.worker, m.live, m.Machine = nil, nil, nil
	return errors.Join(errs...)
}

// failureSummary prints the containers and the last errors: CI keeps the output, but not the folder with the logs.
const failureSummary = `exec 2>&1
crictl ps --all
crictl pods
systemctl list-units --failed --plain --no-legend
journalctl --boot --no-pager --output=cat --unit=kubelet --unit=containerd --unit=crio | grep -E '^E|level=error|Failed|Error' | cut -c1-300 | tail -n 15
for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 4 "$log" | cut -c1-300; done`

func (m *machine) keepLogs(ctx context.Context) {
	for _, one := range []*nodemachine.Machine{m.Machine, m.live, m.worker} {
		if one == nil {
			continue
		}
		if summary, err := one.Exec(ctx, "sh", "-c", failureSummary); err == nil {
			fmt.Fprintf(GinkgoWriter, "State of %s:\n%s\n", one.Name(), summary)
		}
		folder := filepath.Join(suite.Artifacts(), one.Name())
		fmt.Fprintf(GinkgoWriter, "Logs of %s are in %s: %v\n", one.Name(), folder, one.Logs(ctx, folder))
	}
}

// create makes the machine, with a medium if it is not empty, writes the inputs of an installation and serves
// sno-install.
func (m *machine) create(ctx context.Context, medium string) {
	config := m.config
	config.Medium, config.Aliases = medium, []string{apiInternal}
	var err error
	m.Machine = suite.Must(nodemachine.Create(ctx, config))
	m.network, m.gateway, err = m.Network(ctx)
	Expect(err).NotTo(HaveOccurred())
	m.serve(m.lifetime)
	m.lay()
}

// run runs a shell command on the node, and returns its output.
func (m *machine) run(ctx context.Context, command string) string {
	GinkgoHelper()
	return execute(ctx, m.Machine, command)
}

// executor is a machine of any kind.
type executor interface {
	Exec(ctx context.Context, command ...string) (string, error)
}

func execute(ctx context.Context, on executor, command string) string {
	GinkgoHelper()
	return suite.Must(on.Exec(ctx, "sh", "-c", command))
}

func put(ctx context.Context, on *nodemachine.Machine, path string, mode os.FileMode, content []byte) {
	GinkgoHelper()
	Expect(on.Put(ctx, nodemachine.File{Path: path, Mode: mode, Content: content})).To(Succeed())
}

func (m *machine) number(ctx context.Context, command string) int {
	GinkgoHelper()
	return suite.Must(strconv.Atoi(strings.TrimSpace(m.run(ctx, command))))
}

// wait waits until checks hold.
func (m *machine) wait(ctx context.Context, checks ...check) {
	GinkgoHelper()
	waitFor(ctx, m.Machine, checks...)
}

func waitFor(ctx context.Context, on executor, checks ...check) {
	GinkgoHelper()
	for _, c := range checks {
		By(c.what)
		Eventually(ctx, func(ctx context.Context) error {
			_, err := on.Exec(ctx, "sh", "-c", c.command)
			return err
		}).Should(Succeed(), c.what)
	}
}

// boot boots the installed machine with a copy of sno-install for the checks, and creates hostile requests as soon as
// there is an API server. It returns when the command of the way has ended and a first pod runs. The functions run in
// parallel.
func (m *machine) boot(ctx context.Context, parallel ...func(context.Context)) bootTimes {
	began := time.Now()
	Expect(m.Start(ctx)).To(Succeed())
	m.api.at(m.Address())
	m.followJournal(m.Machine)
	Expect(m.putTools(ctx)).To(Succeed())
	var times bootTimes
	inParallel(ctx, append(parallel,
		func(ctx context.Context) { m.wait(ctx, createHostile) },
		func(ctx context.Context) {
			Expect(m.follow(ctx, m.Machine, m.command)).To(Succeed())
			m.uptime = time.Since(began)
		},
		func(ctx context.Context) { times = waitForBoot(ctx, began, m.client(m.Machine)) },
	)...)
	return times
}

// putTools writes what the checks need to the machine.
func (m *machine) putTools(ctx context.Context) error {
	content, err := os.ReadFile(m.install)
	if err != nil {
		return err
	}
	return m.Put(ctx, nodemachine.File{Path: "opt/check/sno-install", Mode: 0o755, Content: content},
		nodemachine.File{Path: "opt/check/hostile.yaml", Mode: 0o600, Content: []byte(hostileRequests())})
}

// passChecks passes the checks of the way, which need the image of the web server.
func (m *machine) passChecks(ctx context.Context) {
	m.loadWebServer(ctx)
	m.wait(ctx, m.checks...)
}

func (m *machine) loadWebServer(ctx context.Context) { m.loadImage(ctx, programs.WebServer, webImage) }

// passChecksAfterRestart returns how long there was no API server during the restart.
func (m *machine) passChecksAfterRestart(ctx context.Context) time.Duration {
	m.api.reset()
	Expect(m.Reboot(ctx)).To(Succeed())
	m.wait(ctx, m.checks...)
	m.endedInOrder(ctx)
	return m.api.reset()
}

// endedInOrder checks that the kubelet ended the pods of workloads before those of the control plane, and none by force.
func (m *machine) endedInOrder(ctx context.Context) {
	By("the restart has ended pods before their control plane, and none by force")
	if m.runtime == "crio" {
		Expect(stoppedInOrder(m.run(ctx, "journalctl --unit=crio --output=cat --no-pager"))).To(BeEmpty())
		return
	}
	kube := clientset(m.client(m.Machine))
	byKubelet := func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonTerminationByKubelet
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		list, err := kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		var workloads, controlPlane []time.Time
		for _, pod := range list.Items {
			for _, c := range pod.Status.ContainerStatuses {
				switch static := pod.Annotations[corev1.MirrorPodAnnotationKey] != ""; {
				case !static && slices.ContainsFunc(pod.Status.Conditions, byKubelet):
					g.Expect(c.State.Terminated).NotTo(BeNil(), pod.Name)
					g.Expect(c.State.Terminated.ExitCode).NotTo(BeNumerically("==", killed), pod.Name)
					workloads = append(workloads, c.State.Terminated.FinishedAt.Time)
				case static && strings.HasPrefix(pod.Namespace, "openshift-"):
					g.Expect(c.LastTerminationState.Terminated).NotTo(BeNil(), pod.Name)
					g.Expect(c.LastTerminationState.Terminated.ExitCode).NotTo(BeNumerically("==", killed), pod.Name)
					controlPlane = append(controlPlane, c.LastTerminationState.Terminated.FinishedAt.Time)
				}
			}
		}
		g.Expect(len(workloads)).To(BeNumerically(">=", 3), "the replicas of the web server")
		g.Expect(controlPlane).NotTo(BeEmpty())
		g.Expect(slices.MaxFunc(workloads, time.Time.Compare)).NotTo(BeTemporally(">", slices.MinFunc(controlPlane, time.Time.Compare)))
	}).Should(Succeed())
}

// stoppedInOrder reads the journal of CRI-O, which does not remember containers from before a restart of the node. It
// returns why the last containers of workloads were not stopped before those of the control plane, or "".
func stoppedInOrder(journal string) string {
	lastWorkload, static := 0, map[string]int{} // the lines of the last stops
	for i, line := range strings.Split(journal, "\n") {
		if strings.Contains(line, "timed out. Killing") {
			return line
		}
		_, container, stopped := strings.Cut(line, `msg="Stopped container `)
		_, container, _ = strings.Cut(container, ": ")
		switch namespace, _, _ := strings.Cut(container, "/"); {
		case !stopped:
		case strings.HasPrefix(namespace, "openshift-"):
			static[namespace] = i + 1
		default:
			lastWorkload = i + 1
		}
	}
	switch {
	case lastWorkload == 0 || len(static) < controlPlanePods:
		return fmt.Sprintf("workloads stopped at line %d, static pods at lines %v", lastWorkload, static)
	case lastWorkload > slices.Min(slices.Collect(maps.Values(static))):
		return fmt.Sprintf("workloads until line %d, static pods at lines %v", lastWorkload, static)
	}
	return ""
}

// controlPlanePods are etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each in its namespace.
const controlPlanePods = 4

// killed is the exit code of a container after SIGKILL.
const killed = 137

// memory returns the working set of the machine's control group as the kubelet counts it, for both versions of control
// groups.
func (m *machine) memory(ctx context.Context) int {
	return m.number(ctx, `cd /sys/fs/cgroup
if [ -e memory.current ]; then all=$(cat memory.current) key=inactive_file
else cd memory; all=$(cat memory.usage_in_bytes) key=total_inactive_file; fi
echo $((all - $(awk -v key=$key '$1 == key { print $2 }' memory.stat)))`)
}

// loadImage loads an image with only a program into the machine's container runtime, and returns the program's path
// here.
func (m *machine) loadImage(ctx context.Context, p programs.Program, name string) string {
	binary := suite.Must(programs.Build(ctx, p, GinkgoWriter))
	image := images.Image{Name: name, Files: map[string]string{p.Name: binary}, Entrypoint: []string{"/" + p.Name}}
	if m.mirror != "" {
		m.push(ctx, image)
		return binary
	}
	archive := m.path("images/" + p.Name + ".tar")
	Expect(os.MkdirAll(filepath.Dir(archive), 0o755)).To(Succeed())
	Expect(images.Write(archive, image)).To(Succeed())
	Expect(m.Containerd().Load(ctx, archive)).To(Succeed())
	return binary
}

// kubeconfig returns one of a file with the address of a machine, because no DNS has the name of the API.
func (m *machine) kubeconfig(file string, of *nodemachine.Machine) *clientcmdapi.Config {
	return m.kubeconfigAt(file, func(port string) string { return net.JoinHostPort(of.Address(), port) })
}

// kubeconfigAt returns one of a file with the address and port at which this machine reaches a port.
func (s *site) kubeconfigAt(file string, reach func(port string) string) *clientcmdapi.Config {
	config := suite.Must(clientcmd.LoadFromFile(s.path(file)))
	for _, cluster := range config.Clusters {
		server := suite.Must(url.Parse(cluster.Server))
		cluster.TLSServerName, cluster.Server = server.Hostname(), "https://"+reach(server.Port())
	}
	return config
}

// adminKubeconfig is the administrator's, in the folder of the installation.
const adminKubeconfig = "sno/auth/kubeconfig"

// client returns the administrator's credentials for the API server of a machine.
func (m *machine) client(of *nodemachine.Machine) *rest.Config {
	return clientOf(m.kubeconfig(adminKubeconfig, of))
}

func clientOf(kubeconfig *clientcmdapi.Config) *rest.Config {
	GinkgoHelper()
	config := suite.Must(clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig())
	config.WarningHandler = rest.NoWarnings{} // about security contexts and labels
	return config
}

func clientset(config *rest.Config) *kubernetes.Clientset {
	return suite.Must(kubernetes.NewForConfig(config))
}

// followJournal prints the journal until the machine is off, with -journal.
func (m *machine) followJournal(of *nodemachine.Machine) {
	if *journal {
		go func() { _ = of.Journal(m.lifetime, GinkgoWriter) }()
	}
}

// inspection keeps the machine for interactive use until Ctrl-C, with -inspect.
func (m *machine) inspection() {
	if !*inspect {
		return
	}
	It("runs until Ctrl-C", func(ctx SpecContext) {
		kubeconfig := filepath.Join(suite.Out(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*m.kubeconfig(adminKubeconfig, m.Machine), kubeconfig)).To(Succeed())
		fmt.Fprintf(GinkgoWriter, "\nThe node runs until Ctrl-C. Use it in another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get pods --all-namespaces\n"+
			"  docker exec %s journalctl --follow\n\n", kubeconfig, m.Name())
		<-ctx.Done()
	})
}

type status struct {
	State, Error, Advice string
	Phases               []struct {
		Name, State       string
		Started, Finished *time.Time
	}
}

const done = "Done"

// statusOf reads the status of a command of sno-install. It is empty before the command has begun.
func statusOf(ctx context.Context, on executor, command string) (s status, err error) {
	text, err := on.Exec(ctx, "sh", "-c", "cat /run/sno-install/"+command+".json 2>/dev/null || echo {}")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(text), &s)
}

// follow prints the phases of a command as they end, and its errors, until the command succeeds. Its unit restarts a
// failed one.
func (m *machine) follow(ctx context.Context, on *nodemachine.Machine, command string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	m.phases, err = follow(ctx, on, command)
	return err
}

// follow returns the phases that have ended, also with an error.
func follow(ctx context.Context, on executor, command string) (phases []phase, err error) {
	failed := ""
	err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		s, err := statusOf(ctx, on, command)
		if err != nil {
			return false, nil
		}
		for _, p := range s.Phases[min(len(phases), len(s.Phases)):] {
			if p.State != done {
				break
			}
			ended := phase{name: p.Name}
			if p.Started != nil && p.Finished != nil {
				ended.took = p.Finished.Sub(*p.Started)
			}
			phases = append(phases, ended)
			fmt.Fprintf(GinkgoWriter, "  phase %s %s\n", ended.name, seconds(ended.took))
		}
		if s.Error != failed {
			failed = s.Error
			fmt.Fprintf(GinkgoWriter, "  %s: %s\n", command, failed)
		}
		return s.State == done, nil
	})
	return phases, err
}

// everywhere holds on every installed node, also after a restart (R-AIO-2, R-AIO-6).
func everywhere(more ...[]check) []check {
	return append([]check{
		{"the node is Ready and schedulable", client + `get node ` + hostname +
			` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}/{.spec.unschedulable}/{.spec.taints}' | grep -qx True//`},
		staticPodsReady(client, "revision"),
		{"three replicas of a web server answer", client + `create deployment web --image=` + webImage + ` --replicas=3 2>/dev/null; ` +
			client + `rollout status deployment/web --timeout=5s && ` +
			`for ip in $(` + client + `get pods --selector=app=web --field-selector=status.phase=Running -o jsonpath='{.items[*].status.podIP}'); do ` +
			`curl --silent --fail --max-time 2 "http://$ip:8080/"; done | sort --unique | wc --lines | grep --quiet --line-regexp 3`},
		{"the kubelet serves logs", client + `logs --namespace=openshift-etcd etcd-` + hostname + ` --tail=1`},
		{"no unit has failed, except one of the image", `! systemctl list-units --failed --plain --no-legend | grep -v '^containerd-fuse-overlayfs'`},
	}, append(slices.Concat(more...), pending()...)...)
}

func staticPodsReady(kubectl, selector string) check {
	return check{"four static pods are Ready", `test "$(` + kubectl + `get pods --all-namespaces -l ` + selector +
		` -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{" "}{end}')" = "True True True True "`}
}

// webImage is a web server whose replicas return their names.
const webImage = "registry.invalid/sno/web-server:test"
