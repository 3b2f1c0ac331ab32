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
	// patience is for one step, on a machine that is busy.
	patience = 10 * time.Minute

	pause = "registry.k8s.io/pause:3.10"
)

// Machine is installed and looked at.
type Machine struct {
	// Config has its name.
	Config nodemachine.Config
	// Folder is for what a person has, and logs. It is emptied.
	Folder string
	// Version is that of Kubernetes, such as v1.36.3.
	Version string
	// PowerCuts are those of a way with power cuts.
	PowerCuts PowerCuts
	// Journal receives what the machine writes into its journal; nil: nobody does.
	Journal io.Writer

	site *site
	node *nodemachine.Machine
	// worker is the second machine, where a way has one.
	worker *nodemachine.Machine
	way    Method
	api    outages
	// phases are those of the command that was followed last.
	phases []StepTime
	// lived is how long the machine was on until its command had ended, the last time.
	lived  time.Duration
	report Report
	// program is the URL of sno-install, as long as Run runs.
	program string
}

// Method is a way to install a machine, and what is done with it then.
type Method struct {
	// Name is for flags, and Title for a person.
	Name, Title string

	steps []step
	// command is the one of sno-install that runs on the node.
	command string
	// checks are besides those that every node has to pass.
	checks []check
	// Long is true for one that takes longer than all others together, most of it without doing anything.
	Long bool
	// PowerCuts is true for one with power cuts.
	PowerCuts bool
}

// Methods returns all of them, in the order in which they are shown.
func Methods() []Method {
	return []Method{InPlace, AllInOne, Kubeadm, AllInOneRenewal, InPlaceFaults, InPlacePowerCuts, AllInOnePowerCuts}
}

// step is a part of a way. When it returns, the next one can begin.
type step struct {
	name string
	do   func(context.Context, *Machine) error
}

// Steps returns the names of the way's steps, in order.
func (w Method) Steps() []string {
	names := make([]string, len(w.steps))
	for i, s := range w.steps {
		names[i] = s.name
	}
	return names
}

// StepTime is how long a step took, and the phases of the command that ran in it.
type StepTime struct {
	Step     string
	Duration time.Duration
	Phases   []StepTime
}

// Report is what was measured, as far as a way has it.
type Report struct {
	Steps []StepTime
	BootTimes
	// Configs are the sizes of configs in bytes: the one that was made, and the one that the live system made of it.
	Configs []int
	// Memory is the machine's in bytes when everything runs, without what the kernel's cache can give back.
	Memory int
	// Restarts are how long nobody from outside had an answer of the API server: over the live system's restart, and over that of the node.
	Restarts []time.Duration
	// Renewal is the same while all certificates were renewed.
	Renewal time.Duration
}

// check is a command on the node that succeeds in the end.
type check struct{ what, command string }

// everywhere holds on every installed node, also after it has been restarted (R-AIO-2, R-AIO-6).
var everywhere = []check{
	{"the node is Ready and schedulable", client + `get node ` + hostname +
		` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}/{.spec.unschedulable}/{.spec.taints}' | grep -qx True//`},
	{"four static pods are Ready", `test "$(` + client + `get pods --all-namespaces -l revision ` +
		`-o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{" "}{end}')" = "True True True True "`},
	{"three replicas of a web server answer", answers},
	{"the kubelet serves logs", client + `logs --namespace=openshift-etcd etcd-` + hostname + ` --tail=1`},
	{"nothing has failed but what the image is known for", `! systemctl list-units --failed --plain --no-legend | grep -v '^containerd-fuse-overlayfs'`},
}

// Run goes through a way, from its start or a step until its end or after another one; an empty name is for the start and the end. For a step later than
// the first the machine and the folder are there from before.
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
	err = m.walk(ctx, w.steps[first:end], first+1, len(w.steps))
	return m.report, err
}

// walk does steps, of which the first one has this number of all.
func (m *Machine) walk(ctx context.Context, steps []step, number, all int) error {
	for i, s := range steps {
		m.say("step %d of %d: %s", number+i, all, s.name)
		began := time.Now()
		m.phases = nil
		if err := s.do(ctx, m); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			if ctx.Err() == nil && m.node != nil {
				if summary, failed := m.node.Exec(ctx, "sh", "-c", failureSummary); failed == nil {
					m.say("state of the machine:\n%s", summary)
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

// failureSummary prints the containers, the kubelet's errors and the last lines of every container of the control plane: CI keeps the end of the output
// and not the folder with the logs.
const failureSummary = `exec 2>&1
crictl ps --all
crictl pods
systemctl list-units --failed --plain --no-legend
journalctl --boot --no-pager --output=cat --unit=kubelet --unit=containerd | grep -E '^E|level=error|Failed|Error' | cut -c1-300 | tail -n 15
for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 4 "$log" | cut -c1-300; done`

var errNoStep = errors.New("there is no such step")

func (m *Machine) checks() []check { return slices.Concat(everywhere, m.way.checks) }

// good passes the checks.
func good(ctx context.Context, m *Machine) error {
	for _, c := range m.checks() {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.say("  %s", c.what)
	}
	return nil
}

// restart restarts the machine, and passes the checks again.
func restart(ctx context.Context, m *Machine) error {
	m.api.reset()
	if err := m.node.Reboot(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := good(ctx, m); err != nil {
		return err
	}
	m.report.Restarts = append(m.report.Restarts, m.api.reset())
	memory, err := m.number(ctx, memoryInUse)
	m.report.Memory = memory
	return err
}

// memoryInUse prints what the control group of the machine has, as the kubelet counts it, for both versions of control groups.
const memoryInUse = `cd /sys/fs/cgroup
if [ -e memory.current ]; then all=$(cat memory.current) key=inactive_file
else cd memory; all=$(cat memory.usage_in_bytes) key=total_inactive_file; fi
echo $((all - $(awk -v key=$key '$1 == key { print $2 }' memory.stat)))`

// number runs a command that prints one.
func (m *Machine) number(ctx context.Context, command string) (int, error) {
	text, err := m.node.Exec(ctx, "sh", "-c", command)
	if err != nil {
		return 0, err //nolint:wrapcheck // it says of what
	}
	return strconv.Atoi(strings.TrimSpace(text)) //nolint:wrapcheck // it has the text
}

// Remove removes the machine, and the worker.
func (m *Machine) Remove() error {
	var errs []error
	for _, machine := range []*nodemachine.Machine{m.worker, m.node} {
		if machine != nil {
			errs = append(errs, machine.Delete())
		}
	}
	return errors.Join(errs...)
}

// Delete removes whatever is left of machines by the name that they were made with.
func Delete(ctx context.Context, config nodemachine.Config) error {
	live, second := config, config
	live.Name, second.Name, live.Network, second.Network = config.Name+"-live", workerMachine(config), config.Name, config.Name
	return errors.Join(nodemachine.Delete(ctx, live), nodemachine.Delete(ctx, second), nodemachine.Delete(ctx, config))
}

// create makes the machine with a medium, lays what a person has for its network, and serves sno-install there.
func (m *Machine) create(ctx context.Context, medium string) error {
	config := m.Config
	config.Medium, config.Aliases = medium, []string{apiInternal}
	var err error
	if m.node, err = nodemachine.Create(ctx, config); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	return m.site.lay()
}

// open finds the machine that was made before.
func (m *Machine) open(ctx context.Context) error {
	var err error
	if m.node, err = nodemachine.Open(ctx, m.Config); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return m.connect(ctx)
}

// connect learns the machine's network, and serves sno-install there.
func (m *Machine) connect(ctx context.Context) error {
	var err error
	if m.site.network, m.site.gateway, err = m.node.Network(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	m.program, err = m.site.serve(ctx)
	return err
}

// boot boots the installed machine.
func boot(ctx context.Context, m *Machine) error { return m.boot(ctx) }

// boot boots the installed machine, with a copy of sno-install that the installation does not know, and makes hostile requests as soon as
// there is an API server. It returns when the command of the way has ended, and a first pod runs.
// beside is done in the meantime.
func (m *Machine) boot(ctx context.Context, beside ...func(context.Context) error) error {
	began := time.Now()
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
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
	group.Go(func() error { return m.wait(all, ask) })
	for _, do := range beside {
		group.Go(func() error { return do(all) })
	}
	group.Go(func() error {
		err := m.follow(all, m.node, m.way.command)
		m.lived = time.Since(began)
		return err
	})
	group.Go(func() error {
		var err error
		m.report.BootTimes, err = arrive(all, began, config)
		return err
	})
	return group.Wait() //nolint:wrapcheck // its functions have
}

// prepare puts what the checks need on the machine.
func (m *Machine) prepare(ctx context.Context) error {
	content, err := os.ReadFile(m.site.install)
	if err != nil {
		return fmt.Errorf("read sno-install: %w", err)
	}
	requests, err := hostileRequests()
	if err != nil {
		return err
	}
	return m.node.Put(ctx, nodemachine.File{Path: "opt/check/sno-install", Mode: 0o755, Content: content}, //nolint:wrapcheck // it says of what
		nodemachine.File{Path: "opt/check/hostile.yaml", Mode: 0o600, Content: []byte(requests)})
}

// kubeconfig returns that of the person who has made the config. There is no DNS that has the name of the API, so it has a machine's address.
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

// client returns the administrator's configuration for the node.
func (m *Machine) client() (*rest.Config, error) { return m.clientOf(m.node) }

// clientOf returns it for another machine.
func (m *Machine) clientOf(of *nodemachine.Machine) (*rest.Config, error) {
	config, err := m.kubeconfig(of)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig() //nolint:wrapcheck // it says what is wrong
}

// WriteKubeconfig writes it for somebody on this machine.
func (m *Machine) WriteKubeconfig(file string) error {
	config, err := m.kubeconfig(m.node)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file) //nolint:wrapcheck // it names the file
}

// wait waits until a check succeeds.
func (m *Machine) wait(ctx context.Context, c check) error {
	return until(ctx, c.what, func(ctx context.Context) error {
		_, err := m.node.Exec(ctx, "sh", "-c", c.command)
		return err //nolint:wrapcheck // the caller says of what
	})
}

// until waits until something returns no error.
func until(ctx context.Context, what string, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		// At the end an error says nothing but that.
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

// journal shows what the machine writes into its journal until it is off or the context ends.
func (m *Machine) journal(ctx context.Context, of *nodemachine.Machine) {
	if m.Journal == nil {
		return
	}
	go func() {
		if err := of.Journal(ctx, m.Journal); err != nil && ctx.Err() == nil {
			m.say("the journal ends: %v", err)
		}
	}()
}

func (m *Machine) say(format string, args ...any) {
	if m.Config.Progress == nil {
		return
	}
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(m.Config.Progress, "        "+format+"\n", args...)
}

// version returns that of Kubernetes as sno-install takes it.
func (m *Machine) version() string { return strings.TrimPrefix(m.Version, "v") }
