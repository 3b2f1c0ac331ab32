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

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrScenario says that a scenario has no likeness with real kubelets.
var ErrScenario = errors.New("no cluster of real kubelets is like that")

// settleTimeout is for controllers to start, elect a leader and come to rest, on a machine that is busy.
const settleTimeout = 3 * time.Minute

// Options say what to start.
type Options struct {
	// Scenario is a name of package scenario: one or three control-plane nodes, and no arbiter.
	Scenario string
	// Kind is the cluster: its nodes are those of the scenario and need not be counted.
	Kind kind.Config
	// NoControllers leaves our controllers out; RunController and Deploy bring them later.
	NoControllers bool
	// EarlyWorkers lets workers of later be there from the start.
	EarlyWorkers bool
	// Figures is a folder for what experiments measure. Empty: one is made in the cluster's own folder.
	Figures string
	// Progress is told what happens; nil for nobody.
	Progress io.Writer
}

// Env is a cluster of real kubelets with a scenario on it. What is embedded speaks to it as it does to an embedded cluster, except for what it says of
// components, simulated nodes and the audit log.
type Env struct {
	*harness.Environment
	// Kind is the cluster below; nil for one that somebody else has installed.
	Kind *kind.Cluster
	// Figures is a folder for what is measured.
	Figures  string
	Progress io.Writer

	// provider is what reports call the cluster.
	provider string
	// later are nodes that have not joined.
	later  []string
	images map[programs.Program]string
	stop   sync.Once
}

// Start makes the cluster and returns when the stand-ins and the controllers have come to rest, before the workers of later join. If that fails or the
// context ends, nothing of it is left.
func Start(ctx context.Context, o Options) (*Env, error) {
	s, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	if s.Arbiters > 0 || s.Masters != 1 && s.Masters != 3 {
		return nil, fmt.Errorf("%w: %s has %d control-plane nodes and %d arbiters, and there are only 1 and 3, and none", ErrScenario, s.Name, s.Masters, s.Arbiters)
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

// Installed is a cluster of one node that an installer has installed.
type Installed struct {
	embedded.Existing
	// Scenario is the one that it was installed as, and Provider what reports call it.
	Scenario, Provider string
	// Node is the name of the node, and Images where its images are.
	Node   string
	Images Nodes
}

// Attach puts on an installed cluster what it does not have: the stand-ins of the other operators, and our controllers. Stop leaves the cluster.
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
	e.Environment = harness.Attach(c, s, e.Progress)
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

// build builds the stand-ins and our controllers, and returns an archive of their images: compilers and a cluster that starts would be in each other's way.
func (e *Env) build(ctx context.Context) (archive string, err error) {
	if archive, e.images, err = controllerImages(ctx, e.Progress); err != nil {
		return "", err
	}
	for _, module := range harness.Modules() {
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
	e.Environment = harness.Attach(c, s, e.Progress)
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

// prepare puts images on the nodes and objects into the cluster.
func (e *Env) prepare(ctx context.Context, nodes Nodes, archive string, install func(context.Context, *embedded.Cluster) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return nodes.Load(groupCtx, archive) })
	group.Go(func() error { return operandImages(groupCtx, nodes, e.Cluster.Dir()) })
	group.Go(func() error { return pullNothing(groupCtx, e.Cluster.Clientset()) })
	group.Go(func() error { return install(groupCtx, e.Cluster) })
	return group.Wait()
}

// operate starts the stand-ins of the operators.
func (e *Env) operate(ctx context.Context) error {
	for _, module := range harness.Modules() {
		if err := e.RunHost(ctx, module); err != nil {
			return err
		}
	}
	return e.RunQuorumGuard(ctx)
}

// attach connects as cluster administrator, with the authority that kubeadm has made.
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

// installNodes shapes the nodes of the installation and takes those of later off.
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

// certificates puts those of kubeadm's etcd where an etcd operator keeps them.
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
		return fmt.Errorf("give etcd's certificates: %w", err)
	}
	secret.Data = map[string][]byte{"tls.crt": []byte(files["healthcheck-client.crt"]), "tls.key": []byte(files["healthcheck-client.key"])}
	if _, err := kube.Secrets(scenario.EtcdNamespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("give etcd's certificates: %w", err)
	}
	bundle, err := kube.ConfigMaps(scenario.EtcdNamespace).Get(ctx, "etcd-ca-bundle", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("give etcd's certificates: %w", err)
	}
	bundle.Data = map[string]string{"ca-bundle.crt": files["ca.crt"]}
	if _, err := kube.ConfigMaps(scenario.EtcdNamespace).Update(ctx, bundle, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("give etcd's certificates: %w", err)
	}
	return nil
}

// Detach leaves the cluster where it is and ends only what runs beside it.
func (e *Env) Detach() {
	e.stop.Do(func() {
		if e.Environment != nil {
			e.Environment.Stop()
		}
	})
}

// Stop removes everything. What cannot be removed is said.
func (e *Env) Stop() {
	e.stop.Do(func() {
		if e.Environment != nil {
			e.Environment.Stop()
		}
		if e.Kind != nil {
			if err := e.Kind.Delete(); err != nil {
				say(e.Progress, "%v", err)
			}
		}
	})
}

// Logs copies what the stand-ins have said, and what the containers of kind's nodes have, into a folder.
func (e *Env) Logs(folder string) error {
	err := e.Cluster.CopyLogs(folder)
	if e.Kind != nil {
		err = errors.Join(err, e.Kind.Logs(filepath.Join(folder, "nodes")))
	}
	return err
}
