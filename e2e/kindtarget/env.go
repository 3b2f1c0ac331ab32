// SPDX-License-Identifier: Apache-2.0

package kindtarget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrScenario means that real kubelets cannot run a scenario.
var ErrScenario = errors.New("not possible with real kubelets")

// settleTimeout is for controllers to start, to elect a leader and to settle, on a busy machine.
const settleTimeout = 3 * time.Minute

// Options configure an Env.
type Options struct {
	// Scenario is a name of package scenario: one or three control-plane nodes, and no arbiter.
	Scenario string
	// Kind is the cluster. Its numbers of nodes come from the scenario.
	Kind kind.Config
	// NoControllers omits the controllers, for RunController and Deploy.
	NoControllers bool
	// EarlyWorkers includes the day-2 workers from the start.
	EarlyWorkers bool
	// Figures is a folder for measurements of experiments. Empty: in the cluster's folder.
	Figures  string
	Progress io.Writer
}

// Env is a cluster of real kubelets with a scenario. The embedded ScenarioCluster works as on an embedded cluster,
// without components, simulated nodes and the audit log.
type Env struct {
	*framework.ScenarioCluster
	// Kind is the cluster; nil for one that another program has installed.
	Kind     *kind.Cluster
	Figures  string
	Progress io.Writer

	provider string
	later    []string
	images   map[programs.Program]string
	stop     sync.Once
}

// Start creates the cluster and returns when the stand-ins and the controllers have settled, before the day-2 workers
// join. On an error or at the end of the context it removes everything.
func Start(ctx context.Context, o Options) (*Env, error) {
	s, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	if s.Arbiters > 0 || s.Masters != 1 && s.Masters != 3 {
		return nil, fmt.Errorf("%w: %s has %d control-plane nodes and %d arbiters, want 1 or 3 and none", ErrScenario, s.Name, s.Masters, s.Arbiters)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	config := o.Kind
	config.ControlPlanes, config.Workers, config.Progress = s.Masters, s.Day1Workers+s.Day2Workers, o.Progress
	e := &Env{Progress: o.Progress, Figures: o.Figures, provider: "kind"}
	archive, err := e.build(ctx)
	if err != nil {
		return nil, err
	}
	if e.Kind, err = kind.Create(ctx, config); err != nil {
		return nil, err
	}
	if err := e.bringUp(ctx, s, o, archive); err != nil {
		err = fmt.Errorf("set up %s: %w", s.Name, err)
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Installed is a cluster of one node from an installer.
type Installed struct {
	embedded.Existing
	// Scenario is what was installed, and Provider the name in reports.
	Scenario, Provider string
	// Node is the name of the node, and Images its container runtime.
	Node   string
	Images Nodes
}

// Attach adds what an installed cluster lacks: the stand-ins of the other operators, and the controllers. Stop does not
// remove the cluster.
func Attach(ctx context.Context, i Installed) (*Env, error) {
	s, err := scenario.Lookup(i.Scenario)
	if err != nil {
		return nil, err
	}
	if i.Progress == nil {
		i.Progress = io.Discard
	}
	e := &Env{Progress: i.Progress, provider: i.Provider}
	archive, err := e.build(ctx)
	if err != nil {
		return nil, err
	}
	c, err := embedded.Attach(ctx, i.Existing)
	if err != nil {
		return nil, err
	}
	e.ScenarioCluster = framework.Attach(c, s, e.Progress)
	err = e.prepare(ctx, i.Images, archive, s.InstallOperators)
	if err == nil {
		err = e.shape(ctx, i.Node, s.Nodes()[0])
	}
	if err == nil {
		err = e.operate(ctx)
	}
	if err == nil {
		err = e.DeployAll(ctx)
	}
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("set up %s: %w", s.Name, err)
	}
	return e, nil
}

// build builds the stand-ins and an archive of the controllers' images first, because compilers would slow down a
// starting cluster.
func (e *Env) build(ctx context.Context) (archive string, err error) {
	if archive, e.images, err = controllerImages(ctx, e.Progress); err != nil {
		return "", err
	}
	for _, module := range framework.Modules() {
		if _, err := programs.Build(ctx, module.Host(), e.Progress); err != nil {
			return "", err
		}
	}
	return archive, nil
}

func (e *Env) bringUp(ctx context.Context, s scenario.Scenario, o Options, archive string) error {
	c, err := e.attach(ctx)
	if err != nil {
		return err
	}
	e.ScenarioCluster = framework.Attach(c, s, e.Progress)
	if e.Figures == "" {
		e.Figures = c.Dir()
	}
	if err := os.MkdirAll(e.Figures, 0o755); err != nil {
		return fmt.Errorf("make the folder of the figures: %w", err)
	}
	if err := e.prepare(ctx, e.Kind, archive, s.InstallObjects); err != nil {
		return err
	}
	if err := e.installNodes(ctx, o.EarlyWorkers); err != nil {
		return err
	}
	if err := e.certificates(ctx); err != nil {
		return err
	}
	if err := joining.Prepare(ctx, c); err != nil {
		return err
	}
	if err := e.operate(ctx); err != nil || o.NoControllers {
		return err
	}
	return e.DeployAll(ctx)
}

func (e *Env) prepare(ctx context.Context, nodes Nodes, archive string, install func(context.Context, *embedded.Cluster) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return nodes.Load(groupCtx, archive) })
	group.Go(func() error { return operandImages(groupCtx, nodes, e.Cluster.Dir()) })
	group.Go(func() error { return install(groupCtx, e.Cluster) })
	return group.Wait()
}

func (e *Env) operate(ctx context.Context) error {
	for _, module := range framework.Modules() {
		if err := e.RunHost(ctx, module); err != nil {
			return err
		}
	}
	return e.RunQuorumGuard(ctx)
}

func (e *Env) attach(ctx context.Context) (*embedded.Cluster, error) {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return nil, err
	}
	var files [2]string
	for i, file := range []string{"ca.crt", "ca.key"} {
		if files[i], err = e.Kind.Exec(ctx, nodes[0], "cat", "/etc/kubernetes/pki/"+file); err != nil {
			return nil, err
		}
	}
	return embedded.Attach(ctx, embedded.Existing{
		Config: e.Kind.RESTConfig(), CACert: []byte(files[0] + "\n"), CAKey: []byte(files[1] + "\n"), Progress: e.Progress,
	})
}

// installNodes configures the nodes of the installation and removes the day-2 workers.
func (e *Env) installNodes(ctx context.Context, early bool) error {
	names, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	specs := e.Scenario.Nodes()
	for i, name := range names {
		if i < len(specs) {
			if err := e.shape(ctx, name, specs[i]); err != nil {
				return err
			}
			continue
		}
		e.later = append(e.later, name)
		if err := e.withhold(ctx, name); err != nil {
			return err
		}
	}
	if early {
		return e.AddDay2Workers(ctx)
	}
	return nil
}

// certificates copies those of kubeadm's etcd to where an etcd operator has them.
func (e *Env) certificates(ctx context.Context) error {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	read := func(name string) (string, error) {
		text, err := e.Kind.Exec(ctx, nodes[0], "cat", "/etc/kubernetes/pki/etcd/"+name)
		return text + "\n", err
	}
	files := map[string]string{"ca.crt": "", "healthcheck-client.crt": "", "healthcheck-client.key": ""}
	for name := range files {
		if files[name], err = read(name); err != nil {
			return err
		}
	}
	kube := e.Kind.Clientset().CoreV1()
	secret, err := kube.Secrets(scenario.EtcdNamespace).Get(ctx, "etcd-client", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("copy etcd's certificates: %w", err)
	}
	secret.Data = map[string][]byte{"tls.crt": []byte(files["healthcheck-client.crt"]), "tls.key": []byte(files["healthcheck-client.key"])}
	if _, err := kube.Secrets(scenario.EtcdNamespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("copy etcd's certificates: %w", err)
	}
	bundle, err := kube.ConfigMaps(scenario.EtcdNamespace).Get(ctx, "etcd-ca-bundle", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("copy etcd's certificates: %w", err)
	}
	bundle.Data = map[string]string{"ca-bundle.crt": files["ca.crt"]}
	if _, err := kube.ConfigMaps(scenario.EtcdNamespace).Update(ctx, bundle, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("copy etcd's certificates: %w", err)
	}
	return nil
}

// Detach keeps the cluster and stops the processes outside of it.
func (e *Env) Detach() {
	e.stop.Do(func() {
		if e.ScenarioCluster != nil {
			e.ScenarioCluster.Stop()
		}
	})
}

// Stop removes everything. It prints what it cannot remove.
func (e *Env) Stop() {
	e.stop.Do(func() {
		if e.ScenarioCluster != nil {
			e.ScenarioCluster.Stop()
		}
		if e.Kind != nil {
			if err := e.Kind.Delete(); err != nil {
				logf(e.Progress, "%v", err)
			}
		}
	})
}

// Logs copies the logs of the stand-ins and of kind's nodes into a folder.
func (e *Env) Logs(folder string) error {
	err := e.Cluster.CopyLogs(folder)
	if e.Kind != nil {
		err = errors.Join(err, e.Kind.Logs(filepath.Join(folder, "nodes")))
	}
	return err
}
