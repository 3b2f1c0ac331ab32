// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/crds"
)

// Config configures a cluster. The zero value is valid.
type Config struct {
	// Assets are the programs to run. Zero: those of assets.Ensure, which downloads or builds missing ones.
	Assets assets.Assets
	// ParentDir is the parent of the cluster's folder. Empty: the system's temporary folder.
	ParentDir string
	// Keep keeps the folder, with logs and data, when the cluster stops.
	Keep bool
	// Bare means only etcd and the API server: no controllers, no scheduler and no nodes. Nothing makes service accounts
	// then, so pods need none. etcd also has a TCP address, EtcdURL.
	Bare bool
	// Light means no scheduler and no nodes, and less memory for the API server: for many clusters on one machine, in
	// which no pod has to run.
	Light bool
	// CRDs are the CustomResourceDefinitions to install, as names or paths of package crds. Nil: DefaultCRDs. Not nil but
	// empty: none.
	CRDs []string
	// CRDFiles are further files. What they define is never replaced by a definition of that module.
	CRDFiles []string
	// APIServer are additional arguments of the API server, such as --admission-control-config-file=FILE. They override
	// the defaults.
	APIServer []string
	// Progress receives a line for each step; may be nil.
	Progress io.Writer

	freePort func() (int, error)
}

// Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	assets      assets.Assets
	folder      *folder
	dir         string
	url         string
	etcdURL     string
	credentials *credentials
	admin       *rest.Config
	clientset   *kubernetes.Clientset
	client      client.Client
	components  []*Component
	progress    *log.Logger
	started     time.Time
	given       map[string]bool // the CustomResourceDefinitions of Config.CRDFiles

	programsMu sync.Mutex
	programs   []*Component

	audit auditTail

	addresses atomic.Uint32 // how many nodes have got one

	stop func() error
}

const (
	// startTimeout bounds a start whose context has no deadline. A start normally takes seconds.
	startTimeout = 2 * time.Minute
	portAttempts = 5
	logTailBytes = 2000
)

// ErrComponentExited is returned when a component ended while the cluster waited for it.
var ErrComponentExited = errors.New("component exited")

var errPortTaken = errors.New("port taken")

// apiServerGarbage makes the API server collect garbage less often. On few shared processors each collection delays
// all processes by a tenth of a second; the price is a few hundred megabytes, which lightGarbage does not pay.
const apiServerGarbage, lightGarbage = "GOGC=400", "GOGC=100"

// Start starts a cluster and returns when its API server is ready, the CustomResourceDefinitions are served and pods
// can be created. The cluster runs until Stop is called or ctx is done.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	if config.freePort == nil {
		config.freePort = FreePort
	}
	if config.CRDs == nil {
		config.CRDs = DefaultCRDs()
	}
	if config.Assets.Dir == "" {
		assets, err := assets.Ensure(ctx, config.Progress)
		if err != nil {
			return nil, fmt.Errorf("get the programs of the cluster: %w", err)
		}
		config.Assets = assets
	}
	if config.Assets.Origin == "" {
		config.Assets.Origin = assets.Given
	}
	folder, err := newFolder(config.ParentDir, config.Keep)
	if err != nil {
		return nil, err
	}
	c := &Cluster{assets: config.Assets, folder: folder, dir: folder.path, progress: log.New(config.Progress, "", 0), started: time.Now()}
	names, garbage := []string{Etcd, APIServer, ControllerManager, Scheduler, Kubelets}, apiServerGarbage
	if config.Light {
		names, garbage = names[:3], lightGarbage
	}
	if config.Bare {
		names = names[:2]
		config.APIServer = append([]string{"--disable-admission-plugins=ServiceAccount"}, config.APIServer...)
	}
	for _, name := range names {
		c.components = append(c.components, &Component{
			name: name, program: c.assets.Program(name), log: filepath.Join(c.dir, name+".log"), dir: c.dir,
		})
	}
	c.say("%s", c.assets.Summary())
	c.Component(APIServer).env = []string{garbage}
	c.stop = sync.OnceValue(c.shutDown)
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.bringUp(startCtx, config); err != nil {
		if config.Keep {
			err = fmt.Errorf("%w (logs are in %s)", err, c.dir)
		}
		return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), c.Stop())
	}
	context.AfterFunc(ctx, func() {
		// The context is done, so the error has no receiver; the next Start removes the folder.
		_ = c.Stop()
	})
	return c, nil
}

func (c *Cluster) bringUp(ctx context.Context, config Config) error {
	var err error
	if c.credentials, err = newCredentials(filepath.Join(c.dir, pkiDir), serviceIP); err != nil {
		return err
	}
	if err := writeAuditPolicy(c.dir); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	var definitions []*apiextensionsv1.CustomResourceDefinition
	group.Go(func() error {
		given, err := crds.Read(groupCtx, nil, config.CRDFiles)
		if err != nil {
			return err
		}
		c.given = map[string]bool{}
		for _, crd := range given {
			c.given[crd.Name] = true
		}
		definitions, err = crds.Read(groupCtx, config.CRDs, config.CRDFiles)
		return err
	})
	group.Go(func() error { return c.startOnFreePort(groupCtx, config) })
	if err := group.Wait(); err != nil {
		return err
	}
	if !config.Bare {
		if err := c.startClients(ctx); err != nil {
			return err
		}
	}
	return c.populate(ctx, definitions)
}

func (c *Cluster) startOnFreePort(ctx context.Context, config Config) error {
	server := c.Component(APIServer)
	for attempt := 1; ; attempt++ {
		port, err := config.freePort()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		if err := c.startEtcd(ctx, config.Bare); err != nil {
			return err
		}
		if err := c.connectTo(port); err != nil {
			return err
		}
		server.args = append(c.apiServerArguments(port), config.APIServer...)
		err = c.StartAPIServer(ctx)
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return err
		}
		c.say("A port was taken by another process, trying another one")
		if err := c.KillAPIServer(); err != nil {
			return err
		}
	}
}

// startEtcd starts etcd unless it runs.
func (c *Cluster) startEtcd(ctx context.Context, onPort bool) error {
	etcd := c.Component(Etcd)
	if etcd.PID() != 0 {
		return nil
	}
	if onPort {
		port, err := FreePort()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		c.etcdURL = fmt.Sprintf("http://%s:%d", loopback, port)
	}
	etcd.args = c.etcdArguments()
	return etcd.Start(ctx)
}

func (c *Cluster) connectTo(port int) error {
	c.url = fmt.Sprintf("https://%s:%d", loopback, port)
	var err error
	if c.admin, err = c.ConfigForUser(adminUser, mastersGroup); err != nil {
		return err
	}
	if c.clientset, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return WriteKubeconfig(c.KubeconfigPath(), c.admin, metav1.NamespaceDefault)
}

// startClients starts the controllers, the scheduler and the simulated kubelets, of those that the cluster has.
func (c *Cluster) startClients(ctx context.Context) error {
	if err := writeStages(c.dir, c.assets); err != nil {
		return err
	}
	for name, client := range map[string]struct{ args, who []string }{
		ControllerManager: {c.controllerManagerArguments(), []string{"system:kube-controller-manager"}},
		Scheduler:         {c.schedulerArguments(), []string{"system:kube-scheduler"}},
		// kwok acts as every node, which no role of Kubernetes allows.
		Kubelets: {c.kubeletsArguments(), []string{"system:kwok", mastersGroup}},
	} {
		component := c.Component(name)
		if component == nil {
			continue
		}
		component.args = client.args
		if err := c.componentKubeconfig(name, client.who[0], client.who[1:]...); err != nil {
			return err
		}
		if err := component.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// populate returns when the CustomResourceDefinitions are served and pods can be created.
func (c *Cluster) populate(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return installCRDs(groupCtx, c.admin, definitions) })
	if c.Component(ControllerManager) != nil {
		group.Go(func() error { return c.WaitForServiceAccount(groupCtx, metav1.NamespaceDefault) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.say("Installed %d CustomResourceDefinitions", len(definitions))
	if err := c.makeClient(); err != nil {
		return err
	}
	c.say("Cluster is up")
	return nil
}

func (c *Cluster) makeClient() error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	if c.client, err = client.New(c.admin, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// NewScheme returns a scheme with the types of Kubernetes, of CustomResourceDefinitions, and of OpenShift's config and
// operator groups.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, configv1.Install, operatorv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// WaitForServiceAccount returns when the controllers have created what a pod in namespace needs: the service account
// default and the ConfigMap with the CA.
func (c *Cluster) WaitForServiceAccount(ctx context.Context, namespace string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if _, last = c.clientset.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); last != nil {
			return false, nil
		}
		_, last = c.clientset.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace %s: %w: %w", namespace, err, last)
	}
	return nil
}

// EnsureNamespace creates a namespace unless it exists, and returns when pods can be created in it.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.clientset.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return c.WaitForServiceAccount(ctx, name)
}

// Origin returns where the cluster's programs are from, in one line (see assets.Assets).
func (c *Cluster) Origin() string { return c.assets.Origin }

// Dir returns the cluster's folder.
func (c *Cluster) Dir() string { return c.dir }

// EtcdURL returns the TCP address of etcd in a cluster with Config.Bare. It needs no certificates.
func (c *Cluster) EtcdURL() string { return c.etcdURL }

// URL returns the address of the API server.
func (c *Cluster) URL() string { return c.url }

// Client returns a client with all permissions and the types of NewScheme. It reads from the API server, not from a
// cache.
func (c *Cluster) Client() client.Client { return c.client }

// Clientset returns a client-go client with all permissions.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Component returns a component by its name, or nil.
func (c *Cluster) Component(name string) *Component {
	for _, component := range c.components {
		if component.name == name {
			return component
		}
	}
	return nil
}

// KillAPIServer ends the API server with SIGKILL.
func (c *Cluster) KillAPIServer() error { return c.Component(APIServer).Kill() }

// StartAPIServer starts the API server after KillAPIServer, on the same port and with the same data, and returns when
// it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	server := c.Component(APIServer)
	started := time.Now()
	r, err := server.start(ctx)
	if err != nil {
		return err
	}
	// Another process on the port may never answer a request, so the end of the API server cancels it.
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-r.exited:
		case <-alive.Done():
		}
	}()
	var last error
	err = wait.PollUntilContextCancel(alive, pollInterval, true, func(ctx context.Context) (bool, error) {
		if etcd := c.Component(Etcd); etcd.PID() == 0 {
			return false, exitError(etcd)
		}
		_, last = c.clientset.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil && r.over() {
		err, last = exitError(server), nil
	}
	if err != nil {
		return fmt.Errorf("wait until the API server is ready: %w", errors.Join(err, last))
	}
	c.say("API server is ready at %s after %s", c.url, time.Since(started).Round(time.Millisecond))
	return nil
}

func exitError(c *Component) error {
	tail := c.LogTail(logTailBytes)
	err := fmt.Errorf("%w: %s: its log %s ends with:\n%s", ErrComponentExited, c.name, c.log, tail)
	if strings.Contains(tail, "address already in use") {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// Stop ends all components and removes the folder unless it is kept. Further calls return the result of the first.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) shutDown() error {
	var errs []error
	// Clients first, so that their logs have no connection errors.
	c.programsMu.Lock()
	for _, program := range c.programs {
		errs = append(errs, program.retire())
	}
	c.programsMu.Unlock()
	for i := len(c.components) - 1; i >= 0; i-- {
		errs = append(errs, c.components[i].retire())
	}
	return errors.Join(append(errs, c.folder.remove())...)
}

func (c *Cluster) say(format string, args ...any) {
	c.progress.Printf("%5.1fs  %s", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}

// FreePort returns a free TCP port. Another process may take it before it is used.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
