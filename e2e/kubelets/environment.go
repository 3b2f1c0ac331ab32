// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrScenario means that real kubelets cannot run a scenario.
var ErrScenario = errors.New("not possible with real kubelets")

const (
	poll = 200 * time.Millisecond
	// settleTimeout is for controllers to start, to elect a leader and to settle, on a busy machine.
	settleTimeout = 3 * time.Minute
)

// Options configure Start.
type Options struct {
	// Scenario is a name of package scenario: one or three control-plane nodes, and no arbiter.
	Scenario string
	// Name is that of the cluster, and the prefix of its containers.
	Name string
	// NoControllers omits the controllers.
	NoControllers bool
	Progress      io.Writer
}

// Env is a cluster of real kubelets with a scenario. The embedded ScenarioCluster works as on an embedded cluster,
// without components, simulated nodes and the audit log.
type Env struct {
	*framework.ScenarioCluster
	// Kind is the cluster; nil for one that another program has installed.
	Kind     *kind.Cluster
	Progress io.Writer

	provider string
	later    []string
	images   map[programs.Program]string
}

// Start creates the cluster and returns when the stand-ins and the controllers run, before the day-2 workers join. On
// an error or at the end of the context it removes everything; later the context has no effect.
func Start(ctx context.Context, o Options) (*Env, error) {
	s, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	if s.Arbiters > 0 || s.Masters != 1 && s.Masters != 3 {
		return nil, fmt.Errorf("%w: %s has %d control-plane nodes and %d arbiters, want 1 or 3 and none", ErrScenario, s.Name, s.Masters, s.Arbiters)
	}
	e := &Env{Progress: o.Progress, provider: "kind"}
	archive, err := e.build(ctx)
	if err != nil {
		return nil, err
	}
	// A cluster that starts loads the machine, so those of other processes wait.
	unlock, err := lock(ctx, "start")
	if err != nil {
		return nil, err
	}
	defer unlock()
	e.Kind, err = kind.Create(ctx, kind.Config{
		Name: o.Name, ControlPlanes: s.Masters, Workers: s.Day1Workers + s.Day2Workers, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	if err := e.bringUp(ctx, s, archive, !o.NoControllers); err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", s.Name, err), e.Stop())
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

// Attach adds what an installed cluster lacks: the stand-ins of the other operators, and the controllers. Stop, and the
// end of the context, do not remove the cluster.
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
		err = e.operate(ctx, ctx)
	}
	if err == nil {
		err = e.DeployAll(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", s.Name, err), e.Stop())
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

func (e *Env) bringUp(ctx context.Context, s scenario.Scenario, archive string, controllers bool) error {
	lasting := context.WithoutCancel(ctx)
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	authority, err := readFiles(ctx, e.Kind, nodes[0], "/etc/kubernetes/pki/", "ca.crt", "ca.key")
	if err != nil {
		return err
	}
	c, err := embedded.Attach(lasting, embedded.Existing{
		Config: e.Kind.RESTConfig(), CACert: authority["ca.crt"], CAKey: authority["ca.key"], Progress: e.Progress,
	})
	if err != nil {
		return err
	}
	e.ScenarioCluster = framework.Attach(c, s, e.Progress)
	if err := e.prepare(ctx, e.Kind, archive, s.InstallObjects); err != nil {
		return err
	}
	if err := e.installNodes(ctx, nodes); err != nil {
		return err
	}
	if err := e.etcdCertificates(ctx, nodes[0]); err != nil {
		return err
	}
	if err := joining.Prepare(ctx, c); err != nil {
		return err
	}
	if err := e.operate(ctx, lasting); err != nil || !controllers {
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

// operate starts the stand-ins. That of the cluster-version-operator runs until Stop or the end of lasting.
func (e *Env) operate(ctx, lasting context.Context) error {
	for _, module := range framework.Modules() {
		if err := e.RunHost(ctx, module); err != nil {
			return err
		}
	}
	return e.RunQuorumGuard(lasting)
}

// installNodes configures the nodes of the installation and removes the day-2 workers.
func (e *Env) installNodes(ctx context.Context, names []string) error {
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
	return nil
}

// etcdCertificates replaces those of the scenario by those of kubeadm's etcd, where an etcd operator has them.
func (e *Env) etcdCertificates(ctx context.Context, node string) error {
	secret, bundle, err := etcdObjects(ctx, e.Kind, node)
	if err != nil {
		return err
	}
	kube := e.Kind.Clientset().CoreV1()
	_, err = kube.Secrets(scenario.EtcdNamespace).Update(ctx, secret, metav1.UpdateOptions{})
	if err == nil {
		_, err = kube.ConfigMaps(scenario.EtcdNamespace).Update(ctx, bundle, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("copy etcd's certificates: %w", err)
	}
	return nil
}

// etcdObjects returns the objects from which guards have their certificates for a client of kubeadm's etcd.
func etcdObjects(ctx context.Context, c *kind.Cluster, node string) (*corev1.Secret, *corev1.ConfigMap, error) {
	files, err := readFiles(ctx, c, node, "/etc/kubernetes/pki/etcd/", "ca.crt", "healthcheck-client.crt", "healthcheck-client.key")
	if err != nil {
		return nil, nil, err
	}
	return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.ClientSecret},
			Data:       map[string][]byte{"tls.crt": files["healthcheck-client.crt"], "tls.key": files["healthcheck-client.key"]},
		}, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.CABundle}, Data: map[string]string{"ca-bundle.crt": string(files["ca.crt"])},
		}, nil
}

func readFiles(ctx context.Context, c *kind.Cluster, node, folder string, names ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range names {
		text, err := c.Exec(ctx, node, "cat", folder+name)
		if err != nil {
			return nil, err
		}
		files[name] = []byte(text + "\n")
	}
	return files, nil
}

// Detach keeps the cluster and stops the processes outside of it.
func (e *Env) Detach() {
	if e.ScenarioCluster != nil {
		e.ScenarioCluster.Stop()
	}
}

// Stop stops the processes outside of the cluster, and removes the cluster if Start has created it.
func (e *Env) Stop() error {
	e.Detach()
	if e.Kind == nil {
		return nil
	}
	return e.Kind.Delete()
}

// Logs copies the logs of the stand-ins and of kind's nodes into a folder.
func (e *Env) Logs(folder string) error {
	err := e.Cluster.CopyLogs(folder)
	if e.Kind != nil {
		err = errors.Join(err, e.Kind.Logs(filepath.Join(folder, "nodes")))
	}
	return err
}

// until waits for a condition, and returns why it was not met within settleTimeout.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}
