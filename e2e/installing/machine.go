// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/testcluster/nodemachine"
)

const (
	poll = 500 * time.Millisecond
	// stepTimeout limits one step, also on a busy machine.
	stepTimeout = 10 * time.Minute

	pause = "registry.k8s.io/pause:3.10"
)

// Machine is a machine to install and check.
type Machine struct {
	Config nodemachine.Config
	// Folder is for configs and logs. It is emptied.
	Folder string
	// Version is that of Kubernetes, such as v1.35.2.
	Version   string
	PowerCuts PowerCuts
	// Journal receives the journal of the machine, if not nil.
	Journal io.Writer

	site   *site
	node   *nodemachine.Machine
	worker *nodemachine.Machine
	way    Method
	api    outages
	phases []StepTime
	// uptime is how long the machine had been on when its last command ended.
	uptime time.Duration
	report Report
	// program is the URL of sno-install while Run runs.
	program string
}

// Method is a way to install a machine, with the steps that follow.
type Method struct {
	Name, Title string

	steps   []step
	command string
	// checks are in addition to those of every node.
	checks []check
	// Long is true if the method takes longer than all others together, most of it idle.
	Long      bool
	PowerCuts bool
}

// Methods returns all methods in the order of reports.
func Methods() []Method {
	return []Method{InPlace, AllInOne, Kubeadm, AllInOneRenewal, InPlaceFaults, InPlacePowerCuts, AllInOnePowerCuts}
}

type step struct {
	name string
	do   func(context.Context, *Machine) error
}

// Steps returns the names of the way's steps, in order.
func (m Method) Steps() []string {
	names := make([]string, len(m.steps))
	for i, s := range m.steps {
		names[i] = s.name
	}
	return names
}

// StepTime is the duration of a step, and of the phases of the command that ran in it.
type StepTime struct {
	Step     string
	Duration time.Duration
	Phases   []StepTime
}

// Report contains what a method measures.
type Report struct {
	Steps []StepTime
	BootTimes
	// Configs are the sizes in bytes of the live system's config and of the installed node's.
	Configs []int
	// Memory is the machine's working set in bytes when everything runs.
	Memory int
	// Restarts are the times without an answer of the API server: over the restarts of the live system and of the node.
	Restarts []time.Duration
	// Renewal is the same for the renewal of all certificates.
	Renewal time.Duration
}

// check is a command on the node that has to succeed eventually.
type check struct{ what, command string }

// everywhere holds on every installed node, also after a restart (R-AIO-2, R-AIO-6).
var everywhere = []check{
	{"the node is Ready and schedulable", client + `get node ` + hostname +
		` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}/{.spec.unschedulable}/{.spec.taints}' | grep -qx True//`},
	{"four static pods are Ready", `test "$(` + client + `get pods --all-namespaces -l revision ` +
		`-o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{" "}{end}')" = "True True True True "`},
	{"three replicas of a web server answer", answers},
	{"the kubelet serves logs", client + `logs --namespace=openshift-etcd etcd-` + hostname + ` --tail=1`},
	{"no unit has failed, except one of the image", `! systemctl list-units --failed --plain --no-legend | grep -v '^containerd-fuse-overlayfs'`},
}

// Run runs the steps of a method, optionally from a step or until another one. For a step after the first, the machine
// and the folder of an earlier run have to exist.
func (m *Machine) Run(ctx context.Context, w Method, from, until string) (Report, error) {
	first, end := 0, len(w.steps)
	for _, name := range []string{from, until} {
		if name != "" && !slices.Contains(w.Steps(), name) {
			return m.report, fmt.Errorf("%w: %s has %s, not %q", errNoStep, w.Name, strings.Join(w.Steps(), ", "), name)
		}
	}
	if from != "" {
		first = slices.Index(w.Steps(), from)
	}
	if until != "" {
		end = slices.Index(w.Steps(), until) + 1
	}
	if end <= first {
		return m.report, fmt.Errorf("%w: %s is before %s", errNoStep, until, from)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.way = w
	var err error
	if m.site, err = newSite(ctx, m.Folder, m.Config.Progress); err != nil {
		return m.report, err
	}
	if first > 0 {
		err = m.open(ctx)
	} else {
		err = m.site.clear()
	}
	if err != nil {
		return m.report, err
	}
	go m.api.watch(ctx)
	err = m.runSteps(ctx, w.steps[first:end], first+1, len(w.steps))
	return m.report, err
}

// runSteps runs steps. number is the position of the first one among all.
func (m *Machine) runSteps(ctx context.Context, steps []step, number, all int) error {
	for i, s := range steps {
		m.logf("step %d of %d: %s", number+i, all, s.name)
		began := time.Now()
		m.phases = nil
		if err := s.do(ctx, m); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			if ctx.Err() == nil && m.node != nil {
				if summary, failed := m.node.Exec(ctx, "sh", "-c", failureSummary); failed == nil {
					m.logf("state of the machine:\n%s", summary)
				}
				err = errors.Join(err, m.node.Logs(ctx, filepath.Join(m.Folder, "logs")))
			}
			if ctx.Err() == nil && m.worker != nil {
				err = errors.Join(err, m.worker.Logs(ctx, filepath.Join(m.Folder, "logs-worker")))
			}
			return err
		}
		m.report.Steps = append(m.report.Steps, StepTime{Step: s.name, Duration: time.Since(began), Phases: m.phases})
	}
	return nil
}

// failureSummary prints the containers and the last errors: CI keeps the output, but not the folder with the logs.
const failureSummary = `exec 2>&1
crictl ps --all
crictl pods
systemctl list-units --failed --plain --no-legend
journalctl --boot --no-pager --output=cat --unit=kubelet --unit=containerd | grep -E '^E|level=error|Failed|Error' | cut -c1-300 | tail -n 15
for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 4 "$log" | cut -c1-300; done`

var errNoStep = errors.New("unknown step")

func (m *Machine) checks() []check { return slices.Concat(everywhere, m.way.checks) }

func passChecks(ctx context.Context, m *Machine) error {
	for _, c := range m.checks() {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.logf("  %s", c.what)
	}
	return nil
}

func restart(ctx context.Context, m *Machine) error {
	m.api.reset()
	if err := m.node.Reboot(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := passChecks(ctx, m); err != nil {
		return err
	}
	m.report.Restarts = append(m.report.Restarts, m.api.reset())
	memory, err := m.number(ctx, memoryInUse)
	m.report.Memory = memory
	return err
}

// memoryInUse prints the working set of the machine's control group as the kubelet counts it, for both versions of
// control groups.
const memoryInUse = `cd /sys/fs/cgroup
if [ -e memory.current ]; then all=$(cat memory.current) key=inactive_file
else cd memory; all=$(cat memory.usage_in_bytes) key=total_inactive_file; fi
echo $((all - $(awk -v key=$key '$1 == key { print $2 }' memory.stat)))`

func (m *Machine) number(ctx context.Context, command string) (int, error) {
	text, err := m.node.Exec(ctx, "sh", "-c", command)
	if err != nil {
		return 0, err //nolint:wrapcheck // names the object
	}
	return strconv.Atoi(strings.TrimSpace(text)) //nolint:wrapcheck // it has the text
}

// Remove removes the machine and the worker.
func (m *Machine) Remove() error {
	var errs []error
	for _, machine := range []*nodemachine.Machine{m.worker, m.node} {
		if machine != nil {
			errs = append(errs, machine.Delete())
		}
	}
	return errors.Join(errs...)
}

// Delete removes all machines of a name.
func Delete(ctx context.Context, config nodemachine.Config) error {
	live, second := config, config
	live.Name, second.Name, live.Network, second.Network = config.Name+"-live", workerMachine(config), config.Name, config.Name
	return errors.Join(nodemachine.Delete(ctx, live), nodemachine.Delete(ctx, second), nodemachine.Delete(ctx, config))
}

// create makes the machine with a medium, writes the inputs of the installation, and serves sno-install.
func (m *Machine) create(ctx context.Context, medium string) error {
	config := m.Config
	config.Medium, config.Aliases = medium, []string{apiInternal}
	var err error
	if m.node, err = nodemachine.Create(ctx, config); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	return m.site.lay()
}

func (m *Machine) open(ctx context.Context) error {
	var err error
	if m.node, err = nodemachine.Open(ctx, m.Config); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return m.connect(ctx)
}

// connect reads the machine's network, and serves sno-install there.
func (m *Machine) connect(ctx context.Context) error {
	var err error
	if m.site.network, m.site.gateway, err = m.node.Network(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	m.program, err = m.site.serve(ctx)
	return err
}

func boot(ctx context.Context, m *Machine) error { return m.boot(ctx) }

// boot boots the installed machine with a copy of sno-install for the checks, and creates hostile requests as soon as
// there is an API server. It returns when the command of the method has ended and a first pod runs. The functions run
// in parallel.
func (m *Machine) boot(ctx context.Context, parallel ...func(context.Context) error) error {
	began := time.Now()
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	m.api.at(m.node.Address())
	m.journal(ctx, m.node)
	if err := m.prepare(ctx); err != nil {
		return err
	}
	config, err := m.client()
	if err != nil {
		return err
	}
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error { return m.wait(all, createHostile) })
	for _, do := range parallel {
		group.Go(func() error { return do(all) })
	}
	group.Go(func() error {
		err := m.follow(all, m.node, m.way.command)
		m.uptime = time.Since(began)
		return err
	})
	group.Go(func() error {
		var err error
		m.report.BootTimes, err = waitForBoot(all, began, config)
		return err
	})
	return group.Wait() //nolint:wrapcheck // its functions wrap theirs
}

func (m *Machine) prepare(ctx context.Context) error {
	content, err := os.ReadFile(m.site.install)
	if err != nil {
		return fmt.Errorf("read sno-install: %w", err)
	}
	requests, err := hostileRequests()
	if err != nil {
		return err
	}
	return m.node.Put(ctx, nodemachine.File{Path: "opt/check/sno-install", Mode: 0o755, Content: content}, //nolint:wrapcheck // names the object
		nodemachine.File{Path: "opt/check/hostile.yaml", Mode: 0o600, Content: []byte(requests)})
}

// kubeconfig returns the administrator's, with the machine's address, because no DNS has the name of the API.
func (m *Machine) kubeconfig(of *nodemachine.Machine) (*clientcmdapi.Config, error) {
	file := m.site.path("sno/auth/kubeconfig")
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, cluster := range config.Clusters {
		url, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		cluster.TLSServerName, cluster.Server = url.Hostname(), "https://"+net.JoinHostPort(of.Address(), url.Port())
	}
	return config, nil
}

func (m *Machine) client() (*rest.Config, error) { return m.clientOf(m.node) }

func (m *Machine) clientOf(of *nodemachine.Machine) (*rest.Config, error) {
	config, err := m.kubeconfig(of)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig() //nolint:wrapcheck // describes the fault
}

// WriteKubeconfig writes the administrator's kubeconfig for this machine.
func (m *Machine) WriteKubeconfig(file string) error {
	config, err := m.kubeconfig(m.node)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file) //nolint:wrapcheck // it names the file
}

func (m *Machine) wait(ctx context.Context, c check) error {
	return until(ctx, c.what, func(ctx context.Context) error {
		_, err := m.node.Exec(ctx, "sh", "-c", c.command)
		return err //nolint:wrapcheck // the caller wraps it
	})
}

func until(ctx context.Context, what string, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, stepTimeout, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		// At the end of the context the error is only that of the context.
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// journal copies the journal to Journal until the machine is off or the context ends.
func (m *Machine) journal(ctx context.Context, of *nodemachine.Machine) {
	if m.Journal == nil {
		return
	}
	go func() {
		if err := of.Journal(ctx, m.Journal); err != nil && ctx.Err() == nil {
			m.logf("reading the journal failed: %v", err)
		}
	}()
}

func (m *Machine) logf(format string, args ...any) {
	if m.Config.Progress == nil {
		return
	}
	_, _ = fmt.Fprintf(m.Config.Progress, "        "+format+"\n", args...)
}

// version returns the version as flags of sno-install take it.
func (m *Machine) version() string { return strings.TrimPrefix(m.Version, "v") }
