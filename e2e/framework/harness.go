// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/versionoperator"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/testcluster/stock"
)

const poll = 50 * time.Millisecond

// ErrNotSettled means that a controller or a host operator did not settle in time.
var ErrNotSettled = errors.New("the operator does not settle")

// Config configures a ScenarioCluster.
type Config struct {
	Scenario string
	// Release is the version of the cluster, a constant of package scenario. Empty: scenario.Release.
	Release string
	// Hosts are the host operators to run, by the module that they may vendor, with further arguments.
	Hosts map[Module][]string
	// Operators are some of these hosts.
	Operators Operators
	// HostCreatesRouter leaves the default IngressController to the ingress host, which then has the arguments for it.
	HostCreatesRouter bool
	// VersionOperator runs the stand-in of the cluster-version-operator with downloads as a static manifest.
	VersionOperator bool
	// QuorumGuard runs it with etcd's quorum guard.
	QuorumGuard bool
	// APIServer are further arguments of the API server.
	APIServer []string
	// RealMinReadySeconds makes a router available after 30 s as in production, which prolongs each of its rollouts. The
	// default is one second, for tests that only wait for the end of rollouts.
	RealMinReadySeconds bool
	Keep                bool
	Progress            io.Writer
}

// ScenarioCluster is a running cluster with a scenario on it.
type ScenarioCluster struct {
	Cluster  *embedded.Cluster
	Scenario scenario.Scenario

	progress     io.Writer
	realMinReady bool
	canary       bool
	hosts        map[Module][]string // by their last arguments
	operators    Operators
	supervisor   *supervisor
	// endVersionOperator stops the stand-in; nil when it does not run.
	endVersionOperator func() error
}

// Start builds the programs, and starts the cluster with the scenario and the host operators, but no controllers.
func Start(ctx context.Context, config Config) (*ScenarioCluster, error) {
	chosen, err := scenario.Lookup(config.Scenario)
	if err != nil {
		return nil, err
	}
	chosen.Release = config.Release
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	s := &ScenarioCluster{
		Scenario: chosen, progress: config.Progress, realMinReady: config.RealMinReadySeconds, canary: true, hosts: map[Module][]string{},
		operators: config.Operators, supervisor: newSupervisor(),
	}
	hosts := slices.Sorted(maps.Keys(config.Hosts))
	for _, module := range hosts {
		if s.operators.Has(module) {
			continue
		}
		// Build first, so that the cluster does not wait for a compiler.
		if _, err := programs.Build(ctx, module.Host(), s.progress); err != nil {
			return nil, err
		}
	}
	s.Cluster, err = embedded.Start(ctx, embedded.Config{
		Progress: config.Progress, Keep: config.Keep, APIServer: config.APIServer, CRDFiles: config.Operators.crdFiles,
	})
	if err != nil {
		return nil, err
	}
	if config.HostCreatesRouter {
		chosen.StockReplicas = 0 // only in this copy
	}
	err = chosen.Install(ctx, s.Cluster)
	if err == nil {
		err = s.prepareGiven(ctx)
	}
	for _, module := range hosts {
		if err == nil {
			err = s.RunHost(ctx, module, config.Hosts[module]...)
		}
	}
	var manifests []versionoperator.Manifest
	if config.VersionOperator {
		manifests = append(manifests, versionoperator.Downloads)
	}
	if config.QuorumGuard {
		manifests = append(manifests, versionoperator.Guard, versionoperator.GuardBudget)
	}
	if err == nil && len(manifests) > 0 {
		err = s.runVersionOperator(ctx, manifests)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// prepareGiven brings what the commands need: the kinds of their modules first, for objects of these.
func (s *ScenarioCluster) prepareGiven(ctx context.Context) error {
	for _, module := range s.operators.Modules() {
		if _, err := s.prepareHost(ctx, module); err != nil {
			return err
		}
	}
	return s.applyObjects(ctx)
}

// prepareHost prepares the cluster for a module's host and returns arguments for the stand-in.
func (s *ScenarioCluster) prepareHost(ctx context.Context, module Module) ([]string, error) {
	if err := s.Prepare(ctx, module); err != nil {
		return nil, err
	}
	if prepare := modules[module].prepare; prepare != nil {
		return prepare(ctx, s.Cluster)
	}
	return nil, nil
}

// Stop stops the cluster. The next start removes a folder that cannot be removed now.
func (s *ScenarioCluster) Stop() {
	// Its error is only relevant while the cluster is in use.
	_ = s.stopVersionOperator()
	_ = s.Cluster.Stop()
}

// stopVersionOperator stops the stand-in of the cluster-version-operator, if it runs.
func (s *ScenarioCluster) stopVersionOperator() error {
	end := s.endVersionOperator
	if s.endVersionOperator = nil; end == nil {
		return nil
	}
	return end()
}

// RunHost starts or restarts a host operator, which has all rights. Arguments are those of the stand-in.
func (s *ScenarioCluster) RunHost(ctx context.Context, module Module, args ...string) error {
	if running := s.Cluster.Program(module.Host().Name); running != nil {
		if err := s.terminate(ctx, module, running); err != nil {
			return err
		}
	}
	all, err := s.prepareHost(ctx, module)
	if err != nil {
		return err
	}
	if s.operators.Has(module) {
		return s.runCommand(ctx, module)
	}
	binary, err := programs.Build(ctx, module.Host(), s.progress)
	if err != nil {
		return err
	}
	kubeconfig, err := s.Cluster.KubeconfigForAdministrator(module.HostUser())
	if err != nil {
		return err
	}
	all = append(all, "--kubeconfig", kubeconfig)
	if module == Ingress {
		all = append(all, fmt.Sprintf("--canary=%t", s.canary), fmt.Sprintf("--min-ready-seconds=%d", s.minReadySeconds()))
	}
	s.hosts[module] = args
	_, err = s.Cluster.Run(ctx, module.Host().Name, binary, append(all, args...)...)
	return err
}

// minReadySeconds is how long a router must be ready before it counts as available.
func (s *ScenarioCluster) minReadySeconds() int {
	if s.realMinReady {
		return int(stock.RouterMinReady / time.Second)
	}
	return 1
}

// UseRealMinReadySeconds sets RealMinReadySeconds for the stand-in. Pods of routers stay.
func (s *ScenarioCluster) UseRealMinReadySeconds(ctx context.Context) error {
	s.realMinReady = true
	args, runs := s.hosts[Ingress]
	if !runs || s.operators.Has(Ingress) {
		return nil
	}
	return s.RunHost(ctx, Ingress, args...)
}

func (s *ScenarioCluster) runVersionOperator(ctx context.Context, manifests []versionoperator.Manifest) error {
	kubeconfig, err := s.Cluster.ConfigForAdministrator(versionoperator.User)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- versionoperator.Run(ctx, kubeconfig, manifests...) }()
	s.endVersionOperator = func() error {
		cancel()
		return <-ended
	}
	return nil
}

// InstallRBAC applies the rights of a controller with its arguments, with the names of an installation. The controller
// itself is a process outside of the cluster.
func (s *ScenarioCluster) InstallRBAC(ctx context.Context, module Module, args ...string) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	variant := "default"
	if slices.Contains(args, "--mode=off") {
		variant = "off"
	}
	return ApplyConfig(ctx, s.Cluster.Client(), filepath.Join(root, string(module), "config", variant), "Deployment", "Service")
}

// RunController starts or restarts a module's controller with its own service account and no right beyond its role.
func (s *ScenarioCluster) RunController(ctx context.Context, module Module, args ...string) (*embedded.Component, error) {
	if err := s.Prepare(ctx, module); err != nil {
		return nil, err
	}
	if err := s.InstallRBAC(ctx, module, args...); err != nil {
		return nil, err
	}
	return s.RunInstalled(ctx, module.Controller(), module.Account(), nil, args...)
}

// InstallAllControllers prepares the cluster for kubectl-sno, all controllers in one process, and applies the rights of
// config/all.
func (s *ScenarioCluster) InstallAllControllers(ctx context.Context) error {
	for _, module := range AllModules() {
		if err := s.Prepare(ctx, module); err != nil {
			return err
		}
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	return ApplyConfig(ctx, s.Cluster.Client(), filepath.Join(root, "config", "all"), "Deployment", "Service")
}

// RunAllControllers starts or restarts kubectl-sno with the service account and the rights of config/all.
func (s *ScenarioCluster) RunAllControllers(ctx context.Context, args ...string) (*embedded.Component, error) {
	if err := s.InstallAllControllers(ctx); err != nil {
		return nil, err
	}
	return s.RunInstalled(ctx, programs.KubectlSNO, AllAccount, []string{"run"}, args...)
}

// RunInstalled starts or restarts a program with an existing service account of SystemNamespace, and the arguments of
// its container.
func (s *ScenarioCluster) RunInstalled(
	ctx context.Context, program programs.Program, account string, container []string, args ...string,
) (*embedded.Component, error) {
	return s.run(ctx, program, SystemNamespace, account, func(kubeconfig string) []string {
		all := append(slices.Clone(container),
			"--kubeconfig", kubeconfig, "--leader-elect-resource-namespace", SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
		return append(all, args...)
	})
}

// run starts or restarts a program with a kubeconfig of an existing service account.
func (s *ScenarioCluster) run(ctx context.Context, program programs.Program, namespace, account string, args func(kubeconfig string) []string) (*embedded.Component, error) {
	if running := s.Cluster.Program(program.Name); running != nil {
		if err := running.Terminate(ctx); err != nil {
			return nil, err
		}
	}
	binary, err := programs.Build(ctx, program, s.progress)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.Cluster.KubeconfigForServiceAccount(ctx, namespace, account)
	if err != nil {
		return nil, err
	}
	return s.Cluster.RunProcess(ctx, embedded.Process{Name: program.Name, Path: binary, Args: args(kubeconfig), Ended: StartAgain(ctx)})
}

// StartAgain returns what starts a controller again that ended by itself with exit code 0, as its Pod would.
func StartAgain(ctx context.Context) func(*embedded.Component, string) {
	return func(c *embedded.Component, _ string) {
		if c.ExitCode() == 0 {
			_ = c.Start(context.WithoutCancel(ctx)) // it fails when the cluster was stopped meanwhile
		}
	}
}

// Object reads the object with a module's conditions.
func (s *ScenarioCluster) Object(ctx context.Context, module Module) (*unstructured.Unstructured, error) {
	at := modules[module]
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(at.kind)
	if err := s.Cluster.Client().Get(ctx, at.key, live); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", at.kind.Kind, at.key, err)
	}
	return live, nil
}

// Condition is a condition that a controller reports.
type Condition struct {
	Type, Status, Reason, Message string
}

func (c Condition) String() string {
	return fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// Condition reads a module's condition. If there is none, only Type is set.
func (s *ScenarioCluster) Condition(ctx context.Context, module Module) (Condition, error) {
	return s.condition(ctx, module, module.ConditionType())
}

func (s *ScenarioCluster) condition(ctx context.Context, module Module, kind string) (Condition, error) {
	condition := Condition{Type: kind}
	live, err := s.Object(ctx, module)
	if err != nil {
		return condition, err
	}
	conditions, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if err != nil {
		return condition, fmt.Errorf("read the conditions of %s: %w", live.GetKind(), err)
	}
	for _, each := range conditions {
		item, _ := each.(map[string]any)
		if item["type"] == condition.Type {
			condition.Status, _ = item["status"].(string)
			condition.Reason, _ = item["reason"].(string)
			condition.Message, _ = item["message"].(string)
		}
	}
	return condition, nil
}

// WaitHost waits until a module's host operator has nothing left to do. It returns at once for a command, of whose
// conditions nothing is known.
func (s *ScenarioCluster) WaitHost(ctx context.Context, module Module, timeout time.Duration) error {
	if s.operators.Has(module) {
		return nil
	}
	for _, kind := range modules[module].atRest {
		last := Condition{Type: kind}
		err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
			now, err := s.condition(ctx, module, kind)
			last = now
			return last.Status == string(operatorv1.ConditionFalse), err
		})
		if err != nil {
			return fmt.Errorf("%w within %s (%s), wanted False: %w", ErrNotSettled, timeout, last, err)
		}
	}
	return nil
}

// WaitReason waits until a module's condition has one of the reasons.
func (s *ScenarioCluster) WaitReason(ctx context.Context, module Module, timeout time.Duration, reasons ...string) (Condition, error) {
	var last Condition
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		now, err := s.Condition(ctx, module)
		if err != nil {
			return false, err
		}
		last = now
		return slices.Contains(reasons, last.Reason), nil
	})
	if err != nil {
		return last, fmt.Errorf("%w within %s (%s), wanted one of %v: %w", ErrNotSettled, timeout, last, reasons, err)
	}
	return last, nil
}

// SetTopology writes both topologies in one request.
func (s *ScenarioCluster) SetTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error {
	live := &configv1.Infrastructure{}
	live.Name = scenario.ClusterName
	body := fmt.Sprintf(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q}}`, controlPlane, infrastructure)
	if err := s.Cluster.Client().Status().Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("change the topology: %w", err)
	}
	return nil
}
