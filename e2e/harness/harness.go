package harness

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

// ErrNotSettled says that a controller did not come to rest in time.
var ErrNotSettled = errors.New("the controller does not come to rest")

// Config says what to put together.
type Config struct {
	// Scenario is a name of package scenario.
	Scenario string
	// Release is the version of the cluster, one of the constants of package scenario. Empty: scenario.Release.
	Release string
	// Hosts are the host operators that run, by the module that they can vendor, each with further arguments.
	Hosts map[Module][]string
	// VersionOperator runs the stand-in for the cluster-version-operator, which brings downloads as a static manifest.
	VersionOperator bool
	// QuorumGuard runs it too, and it brings etcd's quorum guard.
	QuorumGuard bool
	// APIServer are further arguments of the API server.
	APIServer []string
	// RealMinReadySeconds has a router count as available when it has been ready for as long as in life, which is 30 s, and each of its rollouts take that
	// much longer. Otherwise it is a second: for proofs that only wait until rollouts have ended.
	RealMinReadySeconds bool
	// Keep leaves the cluster's folder.
	Keep bool
	// Progress is told what happens; nil for nobody.
	Progress io.Writer
}

// Environment is a running cluster with a scenario on it.
type Environment struct {
	Cluster  *embedded.Cluster
	Scenario scenario.Scenario

	progress io.Writer
	realPace bool
	canary   bool
	hosts    map[Module][]string // the arguments that each was started with last
	// endVersionOperator ends the stand-in and returns when it has ended; nil when it does not run.
	endVersionOperator func() error
}

// Start builds the programs, starts the cluster and installs the scenario and the host operators. Controllers are not running yet.
func Start(ctx context.Context, config Config) (*Environment, error) {
	s, err := scenario.Lookup(config.Scenario)
	if err != nil {
		return nil, err
	}
	s.Release = config.Release
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	r := &Environment{Scenario: s, progress: config.Progress, realPace: config.RealMinReadySeconds, canary: true, hosts: map[Module][]string{}}
	hosts := slices.Sorted(maps.Keys(config.Hosts))
	for _, module := range hosts {
		// Before the cluster starts, so that it does not wait for a compiler.
		if _, err := programs.Build(ctx, module.Host(), r.progress); err != nil {
			return nil, err
		}
	}
	if r.Cluster, err = embedded.Start(ctx, embedded.Config{Progress: config.Progress, Keep: config.Keep, APIServer: config.APIServer}); err != nil {
		return nil, err
	}
	err = s.Install(ctx, r.Cluster)
	for _, module := range hosts {
		if err == nil {
			err = r.RunHost(ctx, module, config.Hosts[module]...)
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
		err = r.runVersionOperator(ctx, manifests)
	}
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// Stop ends the cluster. A folder that cannot be removed now is swept by the next start.
func (r *Environment) Stop() {
	if r.endVersionOperator != nil {
		// How it ends is of interest only while it is needed.
		_ = r.endVersionOperator()
	}
	_ = r.Cluster.Stop()
}

// RunHost starts a host operator, which may do everything. One that runs already is ended first.
func (r *Environment) RunHost(ctx context.Context, module Module, args ...string) error {
	if running := r.Cluster.Program(module.Host().Name); running != nil {
		if err := running.Terminate(ctx); err != nil {
			return err
		}
	}
	binary, err := programs.Build(ctx, module.Host(), r.progress)
	if err != nil {
		return err
	}
	kubeconfig, err := r.Cluster.KubeconfigForAdministrator(module.HostUser())
	if err != nil {
		return err
	}
	all := []string{"--kubeconfig", kubeconfig}
	if module == Ingress {
		all = append(all, fmt.Sprintf("--canary=%t", r.canary), fmt.Sprintf("--min-ready-seconds=%d", r.minReadySeconds()))
	}
	if prepare := modules[module].prepare; prepare != nil {
		own, err := prepare(ctx, r.Cluster)
		if err != nil {
			return err
		}
		all = append(all, own...)
	}
	r.hosts[module] = args
	_, err = r.Cluster.Run(ctx, module.Host().Name, binary, append(all, args...)...)
	return err
}

// minReadySeconds is for how long a router must have been ready before it counts as available.
func (r *Environment) minReadySeconds() int {
	if r.realPace {
		return int(stock.RouterMinReady / time.Second)
	}
	return 1
}

// UseRealMinReadySeconds has the routers wait from now on as in life before they count as available. Their pods stay.
func (r *Environment) UseRealMinReadySeconds(ctx context.Context) error {
	r.realPace = true
	args, runs := r.hosts[Ingress]
	if !runs {
		return nil
	}
	return r.RunHost(ctx, Ingress, args...)
}

func (r *Environment) runVersionOperator(ctx context.Context, manifests []versionoperator.Manifest) error {
	kubeconfig, err := r.Cluster.ConfigForAdministrator(versionoperator.User)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- versionoperator.Run(ctx, kubeconfig, manifests...) }()
	r.endVersionOperator = func() error {
		cancel()
		return <-ended
	}
	return nil
}

// InstallRBAC puts the rights of a module's controller on the cluster, under the names that an installation gives them, and
// nothing more: the controller itself is a process beside the cluster.
func (r *Environment) InstallRBAC(ctx context.Context, module Module) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	return ApplyConfig(ctx, r.Cluster.Client(), filepath.Join(root, string(module), "config", "default"), "Deployment", "Service")
}

// RunController starts a module's controller as a cluster would run it: with its own service account and no right beyond its role.
// One that runs already is ended first.
func (r *Environment) RunController(ctx context.Context, module Module, args ...string) (*embedded.Component, error) {
	if err := r.Prepare(ctx, module); err != nil {
		return nil, err
	}
	if err := r.InstallRBAC(ctx, module); err != nil {
		return nil, err
	}
	return r.runAs(ctx, module.Controller(), module.Account(), nil, args)
}

// RunAllControllers starts all controllers in one process, which is kubectl-sno, with the service account of config/all and no right beyond its roles. One
// that runs already is ended first.
func (r *Environment) RunAllControllers(ctx context.Context, args ...string) (*embedded.Component, error) {
	for _, module := range AllModules() {
		if err := r.Prepare(ctx, module); err != nil {
			return nil, err
		}
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return nil, err
	}
	if err := ApplyConfig(ctx, r.Cluster.Client(), filepath.Join(root, "config", "all"), "Deployment", "Service"); err != nil {
		return nil, err
	}
	return r.runAs(ctx, programs.KubectlSNO, AllAccount, []string{"run"}, args)
}

// runAs starts a program with a service account, which is there.
func (r *Environment) runAs(ctx context.Context, program programs.Program, account string, verb, args []string) (*embedded.Component, error) {
	if running := r.Cluster.Program(program.Name); running != nil {
		if err := running.Terminate(ctx); err != nil {
			return nil, err
		}
	}
	binary, err := programs.Build(ctx, program, r.progress)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := r.Cluster.KubeconfigForServiceAccount(ctx, SystemNamespace, account)
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(verb),
		"--kubeconfig", kubeconfig, "--leader-elect-resource-namespace", SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	return r.Cluster.Run(ctx, program.Name, binary, append(all, args...)...)
}

// Object reads the object that a module shows its conditions on, with everything that the API server says of it.
func (r *Environment) Object(ctx context.Context, module Module) (*unstructured.Unstructured, error) {
	at := modules[module]
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(at.kind)
	if err := r.Cluster.Client().Get(ctx, at.key, live); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", at.kind.Kind, at.key, err)
	}
	return live, nil
}

// Condition is what a controller shows on its object.
type Condition struct {
	Type, Status, Reason, Message string
}

func (v Condition) String() string {
	return fmt.Sprintf("%s=%s, %s: %s", v.Type, v.Status, v.Reason, v.Message)
}

// Condition reads a module's condition. Without one, only the Condition's Type is set.
func (r *Environment) Condition(ctx context.Context, module Module) (Condition, error) {
	verdict := Condition{Type: module.ConditionType()}
	live, err := r.Object(ctx, module)
	if err != nil {
		return verdict, err
	}
	conditions, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if err != nil {
		return verdict, fmt.Errorf("read the conditions of %s: %w", live.GetKind(), err)
	}
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] == verdict.Type {
			verdict.Status, _ = condition["status"].(string)
			verdict.Reason, _ = condition["reason"].(string)
			verdict.Message, _ = condition["message"].(string)
		}
	}
	return verdict, nil
}

// WaitReason waits until a module's controller shows one of the reasons.
func (r *Environment) WaitReason(ctx context.Context, module Module, timeout time.Duration, reasons ...string) (Condition, error) {
	var last Condition
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		now, err := r.Condition(ctx, module)
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

// SetTopology writes both topologies, as whoever changes a cluster's shape at run time does: in one request.
func (r *Environment) SetTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error {
	live := &configv1.Infrastructure{}
	live.Name = scenario.ClusterName
	body := fmt.Sprintf(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q}}`, controlPlane, infrastructure)
	if err := r.Cluster.Client().Status().Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("change the topology: %w", err)
	}
	return nil
}
