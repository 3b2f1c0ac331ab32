// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	poll = 200 * time.Millisecond
	// settleTimeout is for controllers to start, to elect a leader and to settle, on a busy machine.
	settleTimeout = 3 * time.Minute
)

// Env is a cluster of real kubelets with a scenario. The embedded ScenarioCluster works as on an embedded cluster,
// without components, simulated nodes and the audit log. Its methods fail the spec. The zero value has no cluster.
type Env struct {
	*framework.ScenarioCluster
	// Kind is the cluster; nil for one that another program has installed.
	Kind *kind.Cluster

	provider string
	later    []string
	images   map[programs.Program]string
}

// Start creates a cluster with this name, which is also the prefix of its containers. It returns when the stand-ins and
// the controllers, if wanted, run, before the day-2 workers join. The scenario has one or three control-plane nodes,
// and no arbiter. Stop removes the cluster, also after a failure.
func (e *Env) Start(ctx context.Context, of, name string, controllers bool) {
	GinkgoHelper()
	s := suite.Must(scenario.Lookup(of))
	Expect(s.Arbiters).To(BeZero(), "real kubelets have no arbiter")
	Expect(s.Masters).To(Or(Equal(1), Equal(3)), "the number of control-plane nodes of %s", of)
	e.provider = "kind"
	archive := e.build(ctx)
	// A cluster that starts loads the machine, so those of other processes wait.
	defer lock(ctx, "start")()
	e.Kind = suite.Must(kind.Create(ctx, kind.Config{Name: name, ControlPlanes: s.Masters, Workers: s.Day1Workers + s.Day2Workers, Progress: GinkgoWriter}))
	nodes := suite.Must(e.Kind.Nodes())
	authority := readFiles(ctx, e.Kind, nodes[0], "/etc/kubernetes/pki/", "ca.crt", "ca.key")
	lasting := context.WithoutCancel(ctx)
	e.attach(lasting, embedded.Existing{Config: e.Kind.RESTConfig(), CACert: authority["ca.crt"], CAKey: authority["ca.key"]}, s)
	e.prepare(ctx, e.Kind, archive, s.InstallObjects)
	e.installNodes(ctx, nodes)
	// The etcd operator has kubeadm's certificates.
	secret, bundle := etcdObjects(ctx, e.Kind, nodes[0])
	Expect(e.Cluster.Client().Update(ctx, secret)).To(Succeed())
	Expect(e.Cluster.Client().Update(ctx, bundle)).To(Succeed())
	Expect(framework.PrepareJoining(ctx, e.Cluster)).To(Succeed())
	e.operate(ctx, lasting)
	if controllers {
		e.DeployAll(ctx)
	}
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
func (e *Env) Attach(ctx context.Context, i Installed) {
	GinkgoHelper()
	s := suite.Must(scenario.Lookup(i.Scenario))
	e.provider = i.Provider
	archive := e.build(ctx)
	e.attach(ctx, i.Existing, s)
	e.prepare(ctx, i.Images, archive, s.InstallOperators)
	e.shape(ctx, i.Node, s.Nodes()[0])
	e.operate(ctx, ctx)
	e.DeployAll(ctx)
}

func (e *Env) attach(ctx context.Context, to embedded.Existing, s scenario.Scenario) {
	GinkgoHelper()
	to.Progress = GinkgoWriter
	e.ScenarioCluster = framework.Attach(suite.Must(embedded.Attach(ctx, to)), s, GinkgoWriter)
}

// build builds the stand-ins and an archive of the controllers' images first, because compilers would slow down a
// starting cluster.
func (e *Env) build(ctx context.Context) (archive string) {
	GinkgoHelper()
	archive, e.images = controllerImages(ctx)
	for _, module := range framework.Modules() {
		suite.Must(programs.Build(ctx, module.Host(), GinkgoWriter))
	}
	return archive
}

func (e *Env) prepare(ctx context.Context, nodes Nodes, archive string, install func(context.Context, *embedded.Cluster) error) {
	GinkgoHelper()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return nodes.Load(groupCtx, archive) })
	group.Go(func() error { return install(groupCtx, e.Cluster) })
	operandImages(ctx, nodes, e.Cluster.Dir())
	Expect(group.Wait()).To(Succeed())
}

// operate starts the stand-ins. That of the cluster-version-operator runs until Stop or the end of lasting.
func (e *Env) operate(ctx, lasting context.Context) {
	GinkgoHelper()
	for _, module := range framework.Modules() {
		Expect(e.RunHost(ctx, module)).To(Succeed())
	}
	Expect(e.RunQuorumGuard(lasting)).To(Succeed())
}

// installNodes configures the nodes of the installation and removes the day-2 workers.
func (e *Env) installNodes(ctx context.Context, names []string) {
	GinkgoHelper()
	specs := e.Scenario.Nodes()
	for i, name := range names {
		if i < len(specs) {
			e.shape(ctx, name, specs[i])
			continue
		}
		e.later = append(e.later, name)
		e.withhold(ctx, name)
	}
}

// etcdObjects returns the objects from which guards have their certificates for a client of kubeadm's etcd.
func etcdObjects(ctx context.Context, c *kind.Cluster, node string) (*corev1.Secret, *corev1.ConfigMap) {
	GinkgoHelper()
	files := readFiles(ctx, c, node, "/etc/kubernetes/pki/etcd/", "ca.crt", "healthcheck-client.crt", "healthcheck-client.key")
	return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.ClientSecret},
			Data:       map[string][]byte{"tls.crt": files["healthcheck-client.crt"], "tls.key": files["healthcheck-client.key"]},
		}, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.CABundle}, Data: map[string]string{"ca-bundle.crt": string(files["ca.crt"])},
		}
}

func readFiles(ctx context.Context, c *kind.Cluster, node, folder string, names ...string) map[string][]byte {
	GinkgoHelper()
	files := map[string][]byte{}
	for _, name := range names {
		files[name] = []byte(suite.Must(c.Exec(ctx, node, "cat", folder+name)) + "\n")
	}
	return files
}

// Detach keeps the cluster and stops the processes outside of it.
func (e *Env) Detach() {
	if e.ScenarioCluster != nil {
		e.ScenarioCluster.Stop()
	}
}

// Stop stops the processes outside of the cluster, and removes the cluster if Start has created it.
func (e *Env) Stop() {
	GinkgoHelper()
	e.Detach()
	if e.Kind != nil {
		Expect(e.Kind.Delete()).To(Succeed())
	}
}

// Logs copies the logs of the stand-ins and of kind's nodes into a folder. There may be no cluster.
func (e *Env) Logs(folder string) error {
	if e.ScenarioCluster == nil {
		return nil
	}
	err := e.Cluster.CopyLogs(folder)
	if e.Kind != nil {
		err = errors.Join(err, e.Kind.Logs(filepath.Join(folder, "nodes")))
	}
	return err
}
