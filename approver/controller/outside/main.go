package outside

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/solonode/sno/approver/controller/kubelet"
	"github.com/solonode/sno/approver/inventory"
)

var errInterrupted = errors.New("interrupted; what was approved stays approved, and another run goes on from here")

// Main is the main function of the tool that approves from outside of the cluster (R-APP-3): it reads the flags, runs
// until it is done, SIGINT or SIGTERM, and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitNothingPending
	case err != nil:
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	t := newTool(o, stderr)
	code, err := t.run(ctx, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "approve:", err)
	}
	return code
}

// tool is one run of the program.
type tool struct {
	options
	stderr io.Writer

	// call calls a kubelet, and wrap, where it is not nil, is in the way of every request to the API server. Tests have their own.
	call   func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
	wrap   transport.WrapperFunc
	looker *looker
	maps   corev1client.ConfigMapsGetter
	// bell rings when there may be something new to look at.
	bell chan struct{}
	// inventory is the last one that could be read, from text.
	inventory *inventory.Inventory
	text      []byte
}

func newTool(o options, stderr io.Writer) *tool {
	return &tool{options: o, stderr: stderr, call: (&kubelet.Dialer{}).Present, bell: make(chan struct{}, 1)}
}

func (t *tool) run(ctx context.Context, stdout io.Writer) (int, error) {
	if err := t.readInventory(); err != nil {
		return exitUsage, err
	}
	if err := t.connect(); err != nil {
		return exitCluster, err
	}
	to := newReport(t.output, stdout, t.options.inventory, time.Now)
	ctx, cancel := context.WithCancel(ctx)
	defer t.looker.kubelets.wait()
	defer cancel()
	if t.watch {
		return t.watchOn(ctx, to)
	}
	return t.lookOnce(ctx, to)
}

// readInventory reads the file. One that was good stays in use while it is being edited.
func (t *tool) readInventory() error {
	text, err := os.ReadFile(t.options.inventory)
	if err != nil {
		return fmt.Errorf("--inventory: %w", err)
	}
	if t.inventory != nil && bytes.Equal(text, t.text) {
		return nil
	}
	read, err := inventory.Load(text)
	if err != nil {
		return fmt.Errorf("--inventory=%s: %w", t.options.inventory, err)
	}
	t.inventory, t.text = read, text
	return nil
}

func (t *tool) connect() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	config.UserAgent = "sno-approve"
	config.QPS = -1 // the API server's priority and fairness slows us down where that is needed
	config.Wrap(t.wrap)
	certificates, err := certificatesclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	t.maps = core
	known := nodes{core}
	t.looker = &looker{
		requests: &requests{client: certificates.CertificateSigningRequests(), pageSize: pageSize}, nodes: known,
		kubelets: &kubelets{node: known.must, call: t.call, now: time.Now, answered: t.ring},
		policy:   t.policy, limit: t.limit, now: time.Now, dryRun: t.dryRun, patient: t.once, say: t.say,
	}
	return nil
}

// lookOnce looks, and says by the exit code how it stands.
func (t *tool) lookOnce(ctx context.Context, to report) (int, error) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	sum, _, err := t.look(limited, to)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted, errInterrupted
	case limited.Err() != nil:
		return exitCluster, fmt.Errorf("not done within --timeout=%s; another run goes on from here: %w", t.timeout, err)
	case err != nil:
		return exitCluster, err
	case sum.Pending > 0:
		return exitPending, nil
	}
	return exitNothingPending, nil
}

func (t *tool) look(ctx context.Context, to report) (summary, map[string]string, error) {
	authority, err := readAuthority(ctx, t.kubeletCA, t.maps)
	if err != nil {
		return summary{}, nil, err
	}
	return t.looker.look(ctx, sources{t.inventory, authority}, to)
}

func (t *tool) say(format string, args ...any) { fmt.Fprintf(t.stderr, format+"\n", args...) }

// ring never waits: a bell that rang already is enough.
func (t *tool) ring() {
	select {
	case t.bell <- struct{}{}:
	default:
	}
}
