// SPDX-License-Identifier: Apache-2.0

// Package approve implements the command that approves requests from outside the cluster (R-APP-3), as package requests
// decides.
package approve

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/kubelet"
	"github.com/solonode/sno/approver/requests"
)

const (
	exitNothingPending = 0
	exitPending        = 1
	exitUsage          = 2
	exitCluster        = 3
	exitInterrupted    = 130
)

const (
	formatTable = "table"
	formatJSON  = "json"
)

var errUsage = errors.New("invalid flags")

type options struct {
	kubeconfig, inventoryFile, kubeletCA, output string
	once, watch, dryRun, version                 bool
	limit                                        limit
	policy                                       requests.Policy
	every, timeout                               time.Duration
}

const usage = `approve approves the certificate signing requests of nodes that are proven, and prints what the others lack.

  approve --inventory nodes.yaml --once        make one pass over all requests
  approve --inventory nodes.yaml --watch       continue until stopped
  approve --inventory nodes.yaml --once --dry-run

A node that joins is proven by the inventory; a serving certificate by the inventory and by the certificate that the kubelet presents.
No request is denied: you can still approve it by hand. The result is on standard output, everything else on standard error.

Exit codes: 0 no request of a node is pending; 1 some stay pending; 2 the flags or the inventory are invalid;
3 the cluster could not be read or written; 130 interrupted. With --watch, being stopped is 0.

Flags:
`

// parse returns errUsage, with flag.ErrHelp for help, after printing it.
func parse(args []string, out io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("approve", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.inventoryFile, "inventory", "",
		"`File` with the nodes that may join, and the names and addresses in their serving certificates. Every pass reads it again.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig `file`; without it KUBECONFIG, ~/.kube/config, or the pod's service account.")
	flags.StringVar(&o.kubeletCA, "kubelet-ca", "",
		"`File` with the authority of the kubelets, in PEM; without it ConfigMap openshift-config-managed/csr-controller-ca.")
	flags.StringVar(&o.output, "o", formatTable, "`Format` of the result: table, or json for one object per line.")
	flags.BoolVar(&o.once, "once", false, "Make one pass over all requests.")
	flags.BoolVar(&o.watch, "watch", false, "Make a pass for every new request, until stopped.")
	flags.BoolVar(&o.version, "version", false, "Print the version.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Send the approvals as server-side dry runs; write nothing.")
	// The default suffices for 25 nodes that join, or 50 that renew, within ten minutes.
	flags.IntVar(&o.limit.approvals, "max-approvals", 50,
		"Limit of approvals within --max-approvals-window, including those of other runs of this tool.")
	flags.DurationVar(&o.limit.window, "max-approvals-window", 10*time.Minute,
		"Time in which approvals are counted; at most an hour, because the cluster keeps approved requests for as long.")
	flags.DurationVar(&o.policy.MaxAge, "max-age", requests.DefaultMaxAge, "Maximum age of a request.")
	flags.DurationVar(&o.policy.MaxValidity, "max-validity", requests.DefaultMaxValidity, "Maximum validity that a request may ask for.")
	flags.BoolVar(&o.policy.BootstrapTokens, "bootstrap-tokens", false,
		"Also accept requests of kubeadm's bootstrap tokens, not only of OpenShift's node-bootstrapper.")
	flags.DurationVar(&o.every, "every", time.Minute, "With --watch, interval between passes without a new request.")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "With --once, limit for the pass.")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.version {
		return o, nil
	}
	if err := o.validate(flags.Args()); err != nil {
		fmt.Fprintf(out, "approve: %v\nTry approve --help.\n", err)
		return o, err
	}
	return o, nil
}

func (o options) validate(rest []string) error {
	for _, invalid := range []struct {
		is   bool
		text string
	}{
		{len(rest) > 0, fmt.Sprintf("unexpected arguments %q", rest)},
		{o.inventoryFile == "", "--inventory is missing"},
		{o.once == o.watch, "set one of --once and --watch"},
		{o.output != formatTable && o.output != formatJSON, fmt.Sprintf("-o %q is neither table nor json", o.output)},
		{o.limit.approvals < 1, fmt.Sprintf("--max-approvals=%d is not positive", o.limit.approvals)},
		{o.limit.window <= 0 || o.limit.window > time.Hour, fmt.Sprintf("--max-approvals-window=%s is not within an hour", o.limit.window)},
		{o.policy.MaxAge <= 0, fmt.Sprintf("--max-age=%s is not positive", o.policy.MaxAge)},
		{o.policy.MaxValidity <= 0, fmt.Sprintf("--max-validity=%s is not positive", o.policy.MaxValidity)},
		{o.every < time.Second, fmt.Sprintf("--every=%s is shorter than a second", o.every)},
		{o.timeout <= 0, fmt.Sprintf("--timeout=%s is not positive", o.timeout)},
	} {
		if invalid.is {
			return fmt.Errorf("%w: %s", errUsage, invalid.text)
		}
	}
	return nil
}

const (
	minPassInterval = time.Second
	retryInterval   = 5 * time.Second // after a pass that failed
)

var errInterrupted = errors.New("interrupted; what was approved stays approved, and another run continues from here")

// Main runs the program and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return Run(ctx, args, stdout, stderr, Connections{})
}

// Connections are how the tool reaches the API server and the kubelets. The zero value is that of the program.
type Connections struct {
	Wrap transport.WrapperFunc // of the transport to the API server
	// ServingCertificate returns the chain that the kubelet of a node presents.
	ServingCertificate func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
	PageSize           int64 // of lists of requests
}

// Run is Main within another program: it ends with the context instead of a signal.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, connections Connections) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitNothingPending
	case err != nil:
		return exitUsage
	case o.version:
		fmt.Fprintln(stdout, "approve version", releaseVersion())
		return exitNothingPending
	}
	code, err := newTool(o, stderr, connections).run(ctx, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "approve:", err)
	}
	return code
}

type tool struct {
	options
	stderr    io.Writer
	wrap      transport.WrapperFunc // of the transport to the API server
	cluster   cluster
	kubelets  kubelets
	wake      chan struct{}        // receives a value when another pass may find work
	inventory *inventory.Inventory // the last one that could be read
}

func newTool(o options, stderr io.Writer, connections Connections) *tool {
	t := &tool{options: o, stderr: stderr, wrap: connections.Wrap, wake: make(chan struct{}, 1)}
	t.cluster.pageSize = cmp.Or(connections.PageSize, pageSize)
	t.kubelets = kubelets{call: connections.ServingCertificate, answered: t.notify}
	if t.kubelets.call == nil {
		t.kubelets.call = (&kubelet.Dialer{}).ServingCertificate
	}
	return t
}

func (t *tool) run(ctx context.Context, stdout io.Writer) (int, error) {
	if err := t.readInventory(); err != nil {
		return exitUsage, err
	}
	if err := t.connect(); err != nil {
		return exitCluster, err
	}
	to := newReport(t.output, stdout, t.inventoryFile, time.Now)
	ctx, cancel := context.WithCancel(ctx)
	defer t.kubelets.calls.Wait()
	defer cancel()
	if t.watch {
		return t.keepApproving(ctx, to)
	}
	return t.approveOnce(ctx, to)
}

// readInventory keeps the previous inventory when the file cannot be read.
func (t *tool) readInventory() error {
	var read *inventory.Inventory
	text, err := os.ReadFile(t.inventoryFile)
	if err == nil {
		read, err = inventory.Load(text)
	}
	if err != nil {
		return fmt.Errorf("--inventory=%s: %w", t.inventoryFile, err)
	}
	t.inventory = read
	return nil
}

func (t *tool) connect() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster (set --kubeconfig or KUBECONFIG): %w", err)
	}
	config.UserAgent = "sno-approve"
	config.QPS = -1 // the API server limits the rate by priority and fairness
	config.Wrap(t.wrap)
	certificates, err := certificatesclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	t.cluster.requests, t.cluster.core = certificates.CertificateSigningRequests(), core
	t.kubelets.node = t.cluster.node
	return nil
}

func (t *tool) approveOnce(ctx context.Context, to report) (int, error) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	sum, _, err := t.pass(limited, to)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted, errInterrupted
	case limited.Err() != nil:
		return exitCluster, fmt.Errorf("not done within --timeout=%s; another run continues from here: %w", t.timeout, err)
	case err != nil:
		return exitCluster, err
	case sum.Pending > 0:
		return exitPending, nil
	}
	return exitNothingPending, nil
}

// keepApproving makes passes until the context ends, also without new requests: windows open and the inventory changes.
func (t *tool) keepApproving(ctx context.Context, to report) (int, error) {
	changes := &changes{report: to, now: map[types.UID][2]string{}}
	t.print("Watching requests. Stop with Ctrl-C.")
	for {
		t.readInventoryAgain()
		pause := minPassInterval
		_, versions, err := t.pass(ctx, changes)
		if err != nil && ctx.Err() == nil {
			t.print("approve: %v; retrying in %s", err, retryInterval)
			pause = retryInterval
		}
		if !wait(ctx, pause) || (err == nil && !t.waitForWork(ctx, versions)) {
			return exitNothingPending, nil
		}
	}
}

// readInventoryAgain keeps the last inventory while a file has errors. A file that a person removed allows nothing.
func (t *tool) readInventoryAgain() {
	switch err := t.readInventory(); {
	case errors.Is(err, fs.ErrNotExist):
		t.inventory = nil
		t.print("approve: %v; nothing is approved until there is one", err)
	case err != nil:
		t.print("approve: %v; the last inventory that could be read is used", err)
	}
}

// waitForWork returns when another pass is due; false when the context has ended.
func (t *tool) waitForWork(ctx context.Context, versions map[string]string) bool {
	watching, cancel := context.WithTimeout(ctx, t.every)
	var watches sync.WaitGroup
	for _, signer := range requests.Signers {
		watches.Go(func() { t.cluster.waitForRequest(watching, signer, versions[signer], t.notify) })
	}
	select {
	case <-t.wake:
	case <-watching.Done():
	}
	cancel()
	watches.Wait()
	return ctx.Err() == nil
}

func wait(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	}
}

func (t *tool) print(format string, args ...any) { fmt.Fprintf(t.stderr, format+"\n", args...) }

func (t *tool) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
