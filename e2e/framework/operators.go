// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/shlex"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/testcluster/embedded"
)

var (
	// ErrOperators means that operators for hosts, or their CustomResourceDefinitions, cannot be used.
	ErrOperators = errors.New("invalid host operators")
	// ErrOperatorEnded means that the operator of a command ended by itself.
	ErrOperatorEnded = errors.New("the operator ended by itself")
)

const (
	// kubeconfigWord is replaced by the path of the operator's kubeconfig.
	kubeconfigWord = "{kubeconfig}"
	// operatorGrace is how long an operator may take to end after SIGTERM, as a pod may.
	operatorGrace = 30 * time.Second
	// operatorBackOff is the time before an operator that ended by itself is started again, as that of a container.
	operatorBackOff = 10 * time.Second
	// operatorTail fits into the end of the log that a failed spec prints.
	operatorTail = 1200
)

// Operators are commands that are hosts instead of the stand-ins, with the CustomResourceDefinitions and objects that
// they need. The zero value has none.
type Operators struct {
	commands map[Module]command
	crdFiles []string
	objects  []objectDocument
	dir      string
}

type command struct {
	text, program string
	args          []string
}

// OperatorFlags are flags for Operators.
type OperatorFlags struct{ commands, folders, objects []string }

// Bind adds the flags to a set.
func (f *OperatorFlags) Bind(flags *flag.FlagSet) {
	flags.Func("operator", "`NAME=COMMAND` starts a host operator instead of the stand-in; repeatable. NAME is one of "+strings.Join(names(), ", ")+". "+
		"The command has KUBECONFIG in its environment, "+kubeconfigWord+" in it is replaced by the same path, "+releaseWord+" by the cluster's version, and no shell reads it.",
		func(value string) error {
			f.commands = append(f.commands, value)
			return nil
		})
	flags.Func("operator-crds", "`FOLDER` with CustomResourceDefinitions, and no other objects, for these operators; repeatable. They replace those of the same name.",
		func(value string) error {
			f.folders = append(f.folders, value)
			return nil
		})
	flags.Func("operator-objects", "`FOLDER` with objects for these operators, which are applied with their status before they start; repeatable. "+
		releaseWord+" in them is replaced by the cluster's version.",
		func(value string) error {
			f.objects = append(f.objects, value)
			return nil
		})
}

// Read returns the operators of the flags.
func (f *OperatorFlags) Read() (Operators, error) {
	return ReadOperators(f.commands, f.folders, f.objects...)
}

// ReadOperators reads commands of the form NAME=COMMAND and checks that their programs exist, and folders of
// CustomResourceDefinitions and of objects. The words of a command are split as a shell does.
func ReadOperators(commands, folders []string, objects ...string) (Operators, error) {
	o := Operators{commands: map[Module]command{}}
	var err error
	if o.dir, err = os.Getwd(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	for _, value := range commands {
		name, text, found := strings.Cut(value, "=")
		if !found {
			return o, fmt.Errorf("%w: %q is not NAME=COMMAND", ErrOperators, value)
		}
		at := slices.Index(names(), name)
		if at < 0 {
			return o, fmt.Errorf("%w: unknown name %q, choose one of %s", ErrOperators, name, strings.Join(names(), ", "))
		}
		module := AllModules()[at]
		if _, twice := o.commands[module]; twice {
			return o, fmt.Errorf("%w: %s has two commands", ErrOperators, name)
		}
		if o.commands[module], err = readCommand(text); err != nil {
			return o, fmt.Errorf("%w: %s: %w", ErrOperators, name, err)
		}
	}
	if o.crdFiles, err = embedded.CRDFiles(folders...); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	if o.objects, err = readObjects(objects); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	return o, nil
}

func readCommand(text string) (command, error) {
	words, err := shlex.Split(text)
	if err != nil {
		return command{}, fmt.Errorf("read command %q: %w", text, err)
	}
	if len(words) == 0 {
		return command{}, errors.New("its command is empty") //nolint:err113 // ErrOperators is added
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return command{}, fmt.Errorf("find its program: %w", err)
	}
	// It may be started from another folder.
	if program, err = filepath.Abs(program); err != nil {
		return command{}, fmt.Errorf("find its program: %w", err)
	}
	return command{text: strings.TrimSpace(text), program: program, args: words[1:]}, nil
}

// names are those of the hosts in flags, in the order of AllModules.
func names() []string {
	var all []string
	for _, module := range AllModules() {
		all = append(all, module.operatorName())
	}
	return all
}

func (m Module) operatorName() string {
	if m == EtcdGuard {
		return "etcd"
	}
	return string(m)
}

// Has reports whether the module's host is a command.
func (o Operators) Has(module Module) bool {
	_, ok := o.commands[module]
	return ok
}

// Modules returns the modules whose hosts are commands.
func (o Operators) Modules() []Module {
	return slices.DeleteFunc(AllModules(), func(m Module) bool { return !o.Has(m) })
}

// Report returns the host operators of a cluster for its report. hosts are all of them, with arguments for stand-ins.
func (o Operators) Report(hosts map[Module][]string) []report.Operator {
	var all []report.Operator
	for _, module := range AllModules() {
		args, runs := hosts[module]
		switch {
		case !runs:
		case o.Has(module):
			all = append(all, report.Operator{Module: string(module), Command: o.commands[module].text})
		default:
			text := strings.Join(append([]string{module.Host().Name}, args...), " ")
			all = append(all, report.Operator{Module: string(module), Command: text, StandIn: true})
		}
	}
	return all
}

// GivenUser returns the user name of a command that is the module's host.
func (m Module) GivenUser() string { return "given-" + m.Host().Name }

// ownResources are kinds that an operator writes itself. A person would apply its configuration, but none of these.
var ownResources = sets.New("leases", "deployments", "daemonsets", "pods", "poddisruptionbudgets", "machineconfigs", "nodes")

// isOwnWrite reports whether a write of a command proves that an operator acts.
func isOwnWrite(event auditv1.Event) bool {
	object := event.ObjectRef
	return object != nil && event.ResponseStatus != nil && event.ResponseStatus.Code < http.StatusMultipleChoices &&
		!strings.Contains(event.RequestURI, "dryRun=") && (ownResources.Has(object.Resource) || object.Subresource == "status" || object.Subresource == "approval")
}

// IdleOperators returns the modules whose host is a command that has not written any Lease, status or operand yet. With
// an external control plane those of ingress and approver may have nothing to write.
func (s *ScenarioCluster) IdleOperators(ctx context.Context) ([]Module, error) {
	s.supervisor.writes.Lock()
	defer s.supervisor.writes.Unlock()
	external := s.Scenario.ControlPlaneTopology == configv1.ExternalTopologyMode
	var idle []Module
	for _, module := range s.operators.Modules() {
		_, runs := s.hosts[module]
		if external && (module == Ingress || module == Approver) || !runs || s.supervisor.wrote[module] {
			continue
		}
		events, next, err := s.Cluster.AuditEvents(ctx, s.supervisor.read[module], embedded.AuditFilter{User: module.GivenUser(), WritesOnly: true})
		if err != nil {
			return nil, err
		}
		s.supervisor.read[module] = next
		if s.supervisor.wrote[module] = slices.ContainsFunc(events, isOwnWrite); !s.supervisor.wrote[module] {
			idle = append(idle, module)
		}
	}
	return idle, nil
}

// supervisor starts commands again that end by themselves.
type supervisor struct {
	mu sync.Mutex
	// exits counts them, and first is the first of them.
	exits map[Module]int
	first error
	// ended is closed with the first one.
	ended chan struct{}
	// turns count the wanted starts and ends, so that a late restart does not follow one.
	turns map[Module]int

	writes sync.Mutex
	// wrote are the modules whose command has written, and read is how far the audit log was read for the others.
	wrote map[Module]bool
	read  map[Module]int64
}

func newSupervisor() *supervisor {
	return &supervisor{exits: map[Module]int{}, turns: map[Module]int{}, wrote: map[Module]bool{}, read: map[Module]int64{}, ended: make(chan struct{})}
}

func (s *supervisor) turn(module Module) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[module]++
}

// HostOperators returns the host operators that run, for a report.
func (s *ScenarioCluster) HostOperators() []report.Operator {
	all := s.operators.Report(s.hosts)
	s.supervisor.mu.Lock()
	defer s.supervisor.mu.Unlock()
	for i := range all {
		all[i].Exits = s.supervisor.exits[Module(all[i].Module)]
	}
	return all
}

// UntilOperatorEnds returns a context that also ends when the operator of a command ends by itself. Its cause is then
// ErrOperatorEnded with the end of the operator's log.
func (s *ScenarioCluster) UntilOperatorEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.supervisor.ended:
			s.supervisor.mu.Lock()
			defer s.supervisor.mu.Unlock()
			cancel(s.supervisor.first)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// WhileOperatorsRun calls a function, which ends early if the operator of a command ends by itself. The error is then
// ErrOperatorEnded with the end of the operator's log.
func (s *ScenarioCluster) WhileOperatorsRun(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := s.UntilOperatorEnds(ctx)
	defer cancel()
	err := do(ctx)
	if errors.Is(context.Cause(ctx), ErrOperatorEnded) {
		return context.Cause(ctx)
	}
	return err
}

// terminate ends a module's host. Like the container of a pod, a command is killed if it does not end in time.
func (s *ScenarioCluster) terminate(ctx context.Context, module Module, host *embedded.Component) error {
	if !s.operators.Has(module) {
		return host.Terminate(ctx)
	}
	s.supervisor.turn(module)
	limited, cancel := context.WithTimeout(ctx, operatorGrace)
	defer cancel()
	if err := host.Terminate(limited); err != nil && (limited.Err() == nil || ctx.Err() != nil) {
		return err
	}
	return nil
}

// runCommand starts or restarts the command that is the module's host. It has all rights and a user name of its own.
func (s *ScenarioCluster) runCommand(ctx context.Context, module Module) error {
	kubeconfig, err := s.Cluster.KubeconfigForAdministrator(module.GivenUser())
	if err != nil {
		return err
	}
	command := s.operators.commands[module]
	process := embedded.Process{
		Name: module.Host().Name, Path: command.program, Dir: s.operators.dir, Env: []string{"KUBECONFIG=" + kubeconfig}, Group: true,
		Ended: func(p *embedded.Component, how string) { s.commandEnded(context.WithoutCancel(ctx), module, p, how) },
	}
	words := strings.NewReplacer(kubeconfigWord, kubeconfig, releaseWord, s.release())
	for _, arg := range command.args {
		process.Args = append(process.Args, words.Replace(arg))
	}
	s.hosts[module] = nil
	_, _ = fmt.Fprintf(s.progress, "The %s operator is: %s\n", module.operatorName(), command.text)
	if _, err := s.Cluster.RunProcess(ctx, process); err != nil {
		return fmt.Errorf("operator of %s: %w", module.operatorName(), err)
	}
	return nil
}

// commandEnded reports that the command of a module ended by itself, and starts it again as a kubelet does.
func (s *ScenarioCluster) commandEnded(ctx context.Context, module Module, program *embedded.Component, how string) {
	supervisor := s.supervisor
	err := fmt.Errorf("%w: %s, %s (%s); its log ends with:\n%s", ErrOperatorEnded, module.operatorName(), how, s.operators.commands[module].text,
		program.LogTail(operatorTail))
	_, _ = fmt.Fprintln(s.progress, err)
	supervisor.mu.Lock()
	defer supervisor.mu.Unlock()
	supervisor.exits[module]++
	if supervisor.first == nil {
		supervisor.first = err
		close(supervisor.ended)
	}
	turn := supervisor.turns[module]
	time.AfterFunc(operatorBackOff, func() {
		supervisor.mu.Lock()
		defer supervisor.mu.Unlock()
		if supervisor.turns[module] == turn {
			// Its cluster may be stopped.
			_ = program.Start(ctx)
		}
	})
}
