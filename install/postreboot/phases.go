// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// ControlPlaneReady is a marker file, relative to the root: neither the control plane nor a person needs files of the
// bootstrap phase any more. It exists while these are removed.
const ControlPlaneReady = "etc/kubernetes/bootstrap-control-plane-ready"

const (
	apiLimit      = 30 * time.Minute
	joinLimit     = time.Hour
	completeLimit = 10 * time.Minute
	operatorLimit = 2 * time.Hour
	cleanLimit    = 5 * time.Minute

	// requestLimit limits one request, since an API server that is replaced may never answer.
	requestLimit = 10 * time.Second
)

// Options of Phases.
type Options struct {
	Root      string
	Systemctl func(ctx context.Context, arguments ...string) error
	Interval  time.Duration
	Now       func() time.Time
	// BeforeRemove is called before a path, relative to the root, is removed, so that tests can interrupt there; nil does
	// nothing.
	BeforeRemove func(path string) error
}

// Phases returns the phases after the restart (U-INS-13). The first two have no condition: a run that begins again
// before the control plane is ready waits for the API server and the Node again.
func Phases(o Options) []phase.Phase {
	return append([]phase.Phase{
		{Name: "api", Limit: apiLimit, Run: o.api},
		{Name: "join", Limit: joinLimit, Run: o.join},
		{Name: "bootstrap-complete", Limit: completeLimit, Done: o.bootstrapped, Run: o.markBootstrapped},
		{Name: "operators", Limit: operatorLimit, Run: o.operators},
		{Name: "available", Limit: operatorLimit, Done: o.complete, Run: o.available},
	}, o.clean()...)
}

func (o Options) path(relative string) string { return filepath.Join(o.Root, relative) }

func (o Options) settings() (*node.Settings, error) {
	return node.Read(o.path(node.BootstrapSettings)) //nolint:wrapcheck // it names the file
}

func (o Options) client() (kubernetes.Interface, error) {
	path := o.path(node.BootstrapKubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	config.Timeout, config.QPS = requestLimit, -1 // priority and fairness of the server limits the rate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return client, nil
}

func (o Options) api(ctx context.Context, p *phase.Progress) error {
	client, err := o.client()
	if err == nil {
		err = o.restartKubelet(ctx)
	}
	if err != nil {
		return err
	}
	return p.Until(ctx, o.Interval, "the API server", func(ctx context.Context) error {
		return controlplane.Ready(ctx, client.Discovery().RESTClient()) //nolint:wrapcheck // it has the failed checks
	})
}

// join approves only the requests of this machine (R-APP-4, U-INS-14).
func (o Options) join(ctx context.Context, p *phase.Progress) error {
	s, err := o.settings()
	if err != nil {
		return err
	}
	created, err := s.CreatedAt()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", o.path(node.BootstrapSettings), err, phase.ErrInput)
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	return join.Approve(ctx, join.Options{ //nolint:wrapcheck // it names the node
		Client: client, Root: o.Root, Name: s.Name, Addresses: s.Addresses, Since: created, Interval: o.Interval, Now: o.Now,
		Restart: func(ctx context.Context) error { return o.Systemctl(ctx, "restart", "kubelet.service") },
	}, p)
}

// ConfigMap that marks the end of the bootstrap phase for operators and upstream's installer.
const (
	bootstrapNamespace = metav1.NamespaceSystem
	bootstrapName      = "bootstrap"
	statusKey          = "status"
	statusComplete     = "complete"
)

// bootstrapped returns false if the API server does not answer, so that the first phase waits for it.
func (o Options) bootstrapped(ctx context.Context) (bool, error) {
	client, err := o.client()
	if err != nil {
		return false, nil //nolint:nilerr // the first phase reports it
	}
	m, err := client.CoreV1().ConfigMaps(bootstrapNamespace).Get(ctx, bootstrapName, metav1.GetOptions{})
	return err == nil && m.Data[statusKey] == statusComplete, nil
}

func (o Options) markBootstrapped(ctx context.Context, p *phase.Progress) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	m := corev1ac.ConfigMap(bootstrapName, bootstrapNamespace).WithData(map[string]string{statusKey: statusComplete})
	return p.Until(ctx, o.Interval, "ConfigMap "+bootstrapNamespace+"/"+bootstrapName, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(bootstrapNamespace).Apply(ctx, m, metav1.ApplyOptions{FieldManager: join.FieldManager})
		return err //nolint:wrapcheck // the progress names the object
	})
}

// complete reads the marker that available writes.
func (o Options) complete(context.Context) (bool, error) {
	_, err := os.Lstat(o.path(ControlPlaneReady))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // it names the file
}

// operators waits until the operators have taken over the control plane (R-BIP-17).
func (o Options) operators(ctx context.Context, p *phase.Progress) error {
	s, err := o.settings()
	if err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	c := controlPlane{client, s}
	return p.Until(ctx, o.Interval, "the control plane", func(ctx context.Context) error { //nolint:wrapcheck // it names the static pods
		if err := o.restartKubelet(ctx); err != nil {
			return err
		}
		return o.published(ctx, client, c.ready(ctx))
	})
}

// published writes the statuses to the cluster while it is not complete, for a hub that shows them. It returns the
// reason why it is not: nobody waits for what is only shown.
func (o Options) published(ctx context.Context, client kubernetes.Interface, reason error) error {
	if reason != nil {
		if all, err := monitor.Read(o.path(node.BootstrapStatus), o.path(node.PostRebootStatus)); err == nil {
			_ = monitor.Publish(ctx, client, all, monitor.Installing)
		}
	}
	return reason
}

// available waits until the cluster is complete, so that logs outlast an installation that is not (R-BIP-23). It writes
// the statuses to the cluster, and a marker: the settings and the kubeconfig are removed next, so a run that begins
// again could not read the cluster.
func (o Options) available(ctx context.Context, p *phase.Progress) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	if err := p.Until(ctx, o.Interval, "the cluster", func(ctx context.Context) error {
		if err := monitor.Available(ctx, client); err != nil {
			return o.published(ctx, client, err) //nolint:wrapcheck // it names the object
		}
		all, err := monitor.Read(o.path(node.BootstrapStatus), o.path(node.PostRebootStatus))
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		return monitor.Publish(ctx, client, all, monitor.Complete) //nolint:wrapcheck // it names the object
	}); err != nil {
		return err //nolint:wrapcheck // it has what it waits for
	}
	_, err = rotate.WriteChanged(o.Root, []files.File{{Path: ControlPlaneReady, Mode: 0o600}})
	return err //nolint:wrapcheck // it names the file
}

// Unit returns the systemd unit of this command. The shell removes the unit after the program has removed itself, also
// at the next boot (R-BIP-18, U-INS-15). The type is not oneshot: without the unit's file systemd forgets the type,
// applies the time limit of a start, and ends the shell as failed (U-INS-31).
func Unit(s node.Settings) string {
	program, unit := "/"+s.Executable(), "/"+node.UnitDir+"/"+node.PostRebootUnit
	link := "/" + node.UnitDir + "/multi-user.target.wants/" + node.PostRebootUnit
	return fmt.Sprintf(`[Unit]
Description=Finish the installation of this node
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart=/bin/sh -ec 'if test -e %[1]s; then %[1]s post-reboot; fi; rm -f %[2]s %[3]s; systemctl daemon-reload'
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=%[4]d

[Install]
WantedBy=multi-user.target
`, program, unit, link, phase.ExitInput)
}
