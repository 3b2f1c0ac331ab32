package outside

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/solonode/sno/approver"
)

// Exit codes.
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

// errUsage is returned for flags that make no sense; help is one of them.
var errUsage = errors.New("invalid flags")

// options are the flags.
type options struct {
	kubeconfig, inventory, kubeletCA, output string
	once, watch, dryRun                      bool
	limit                                    approver.Limit
	policy                                   approver.Policy
	every, timeout                           time.Duration
}

const usage = `approve approves the certificate signing requests of nodes that it can prove, and says of every other one what is missing.

  approve --inventory nodes.yaml --once        look once, approve, and say how it stands
  approve --inventory nodes.yaml --watch       go on until it is stopped
  approve --inventory nodes.yaml --once --dry-run

A node that joins is proven by the inventory; a node that serves by the inventory and by the certificate that its kubelet presents.
Nothing is ever denied: who knows more can still approve by hand. The answer is on standard output, everything else on standard error.

Exit codes: 0 no request of a node is pending; 1 some stay pending, for want of a proof; 2 the flags or the inventory cannot be used;
3 the cluster could not be read or written; 130 interrupted. With --watch, being stopped is no interruption: 0.

Flags:
`

// parse reads the flags. Help is a flag.ErrHelp, any other error an errUsage that the flag package or this function has printed.
func parse(args []string, out io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("approve", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.inventory, "inventory", "", "`File` with the nodes that may join and the names and addresses they serve by. It is read anew at every look.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig `file`; without it KUBECONFIG, ~/.kube/config, or the pod's service account.")
	flags.StringVar(&o.kubeletCA, "kubelet-ca", "",
		"`File` with the certificates of who signs for kubelets, in PEM; without it ConfigMap openshift-config-managed/csr-controller-ca.")
	flags.StringVar(&o.output, "o", formatTable, "`Format` of the answer: table, or json for one object per line.")
	flags.BoolVar(&o.once, "once", false, "Look once and end.")
	flags.BoolVar(&o.watch, "watch", false, "Look whenever there is something new, until stopped.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Ask the API server whether it would take the approvals; write nothing.")
	flags.IntVar(&o.limit.Approvals, "max-approvals", approver.DefaultLimit.Approvals,
		"How many approvals there may be within --max-approvals-window, those of other runs of this tool included.")
	flags.DurationVar(&o.limit.Window, "max-approvals-window", approver.DefaultLimit.Window,
		"The time in which approvals are counted; at most an hour, since approved requests are kept for as long.")
	flags.DurationVar(&o.policy.MaxAge, "max-age", approver.DefaultMaxAge, "How old a request may be.")
	flags.BoolVar(&o.policy.BootstrapTokens, "bootstrap-tokens", false,
		"Let kubeadm's bootstrap tokens ask for nodes too, not only OpenShift's node-bootstrapper.")
	flags.DurationVar(&o.every, "every", time.Minute, "With --watch, how often to look although nothing is new.")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "With --once, how long all of it may take.")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := o.validate(flags.Args()); err != nil {
		fmt.Fprintf(out, "approve: %v\nTry approve --help.\n", err)
		return o, err
	}
	return o, nil
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%w: unexpected argument %q", errUsage, rest[0])
	case o.inventory == "":
		return fmt.Errorf("%w: --inventory is missing", errUsage)
	case o.once == o.watch:
		return fmt.Errorf("%w: give one of --once and --watch", errUsage)
	case o.output != formatTable && o.output != formatJSON:
		return fmt.Errorf("%w: -o %q is neither table nor json", errUsage, o.output)
	case o.limit.Approvals < 1:
		return fmt.Errorf("%w: --max-approvals=%d is not positive", errUsage, o.limit.Approvals)
	case o.limit.Window <= 0 || o.limit.Window > time.Hour:
		return fmt.Errorf("%w: --max-approvals-window=%s is not within an hour", errUsage, o.limit.Window)
	case o.policy.MaxAge <= 0:
		return fmt.Errorf("%w: --max-age=%s is not positive", errUsage, o.policy.MaxAge)
	case o.every < time.Second:
		return fmt.Errorf("%w: --every=%s is shorter than a second", errUsage, o.every)
	case o.timeout <= 0:
		return fmt.Errorf("%w: --timeout=%s is not positive", errUsage, o.timeout)
	}
	return nil
}
