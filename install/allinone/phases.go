// SPDX-License-Identifier: Apache-2.0

package allinone

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Limits of the phases: generous, since they only end what hangs.
const (
	short = 10 * time.Minute
	long  = 30 * time.Minute
	// soon is for Rotate: if a phase takes longer, the next run begins with the disk again, where more may be due by then.
	soon = time.Minute
)

// NewMachine returns m with the paths of an all-in-one node. The caller sets the other fields.
func NewMachine(m controlplane.Machine) *controlplane.Machine {
	m.SettingsFile, m.Manifests, m.Rendered = node.AllInOneSettings, node.AllInOneManifests, node.AllInOneRendered
	return &m
}

// Phases returns the installation of an all-in-one node (R-AIO-2, R-AIO-3, R-AIO-5), see the package's documentation.
// check checks the machine's image.
func Phases(m *controlplane.Machine, check func(context.Context, *node.Settings) error) []phase.Phase {
	return []phase.Phase{
		{Name: "preflight", Limit: short, Run: func(ctx context.Context, _ *phase.Progress) error {
			s, err := m.Settings()
			if err != nil {
				return err //nolint:wrapcheck // it names the file
			}
			return check(ctx, s)
		}},
		{Name: "render", Limit: short, Done: m.IsRendered, Run: func(ctx context.Context, p *phase.Progress) error { return m.Render(ctx, p) }},
		{Name: "static-pods", Limit: short, Run: func(context.Context, *phase.Progress) error { return writeFiles(m) }},
		{Name: "api", Limit: long, Run: m.WaitForAPI},
		{Name: "apply-manifests", Limit: long, Run: func(ctx context.Context, p *phase.Progress) error { return apply(ctx, m, p) }},
		{Name: "join", Limit: long, Run: func(ctx context.Context, p *phase.Progress) error { return approve(ctx, m, p) }},
		{Name: "finish", Limit: short, Done: m.FileExists(node.AllInOneMarker), Run: func(ctx context.Context, p *phase.Progress) error {
			if err := p.Until(ctx, m.Interval, "the API server", func(ctx context.Context) error { return publish(ctx, m) }); err != nil {
				return err //nolint:wrapcheck // it names the object
			}
			return m.WriteFiles(files.File{Path: node.AllInOneMarker, Mode: 0o600})
		}},
	}
}

// Rotate returns the renewal of the certificates of a running node (R-AIO-7). docs/all-in-one.md describes the phases.
// kube-controller-manager approves only a client certificate, and only while the previous one is valid; join approves
// the others.
func Rotate(m *controlplane.Machine, k Kubelet) []phase.Phase {
	return append(onDisk(m),
		phase.Phase{Name: "api", Limit: soon, Run: m.WaitForAPI},
		phase.Phase{Name: "apply-manifests", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return apply(ctx, m, p) }},
		phase.Phase{Name: "kubelet", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return k.updateAccess(ctx, m, p) }},
		phase.Phase{Name: "join", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return approve(ctx, m, p) }},
	)
}

// RotateBeforeKubelet returns the renewal before the kubelet starts, on the disk only. A kubelet that has started pods
// with certificates that have ended could not end these pods: it would wait for the API server.
func RotateBeforeKubelet(m *controlplane.Machine) []phase.Phase {
	return append(onDisk(m), phase.Phase{Name: "kubelet", Limit: short, Run: func(context.Context, *phase.Progress) error {
		access, err := accessOf(m)
		if err != nil {
			return err
		}
		return m.WriteFiles(access...) //nolint:wrapcheck // it names the file
	}})
}

func onDisk(m *controlplane.Machine) []phase.Phase {
	return []phase.Phase{
		{Name: "rotate", Limit: short, Run: func(ctx context.Context, _ *phase.Progress) error { return m.Rotate(ctx) }},
		{Name: "static-pods", Limit: short, Run: func(context.Context, *phase.Progress) error { return m.WriteStaticPods() }},
	}
}

// writeFiles writes the static pods and the kubelet's files, its kubeconfig last: the kubelet starts when it finds it.
func writeFiles(m *controlplane.Machine) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := m.WriteFiles(kubelet.Environment(s)); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := m.WriteStaticPods(); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	access, err := accessOf(m)
	if err != nil {
		return err
	}
	return m.WriteFiles(access...) //nolint:wrapcheck // it names the file
}

func apply(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	_, err := m.Apply(ctx, p, m.Rendered+"/manifests")
	return err //nolint:wrapcheck // it names every manifest
}

// approve approves the kubelet's two requests, and waits until the node is Ready (R-AIO-6, R-AIO-9).
func approve(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	created, err := s.CreatedAt()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", m.SettingsFile, err, phase.ErrInput)
	}
	client, err := newClient(m)
	if err != nil {
		return err
	}
	return join.Approve(ctx, join.Options{ //nolint:wrapcheck // it names the node
		Client: client, Root: m.Root, Name: s.Name, Addresses: s.Addresses, Since: created, Interval: m.Interval, Now: time.Now,
		Restart: func(ctx context.Context) error { return m.Systemctl(ctx, "restart", "kubelet.service") },
	}, p)
}

// publish writes the status of the installation to the cluster.
func publish(ctx context.Context, m *controlplane.Machine) error {
	client, err := newClient(m)
	if err != nil {
		return err
	}
	all, err := monitor.Read(m.Path(node.AllInOneStatus))
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return monitor.Publish(ctx, client, all, monitor.Complete) //nolint:wrapcheck // it names the object
}

func newClient(m *controlplane.Machine) (*kubernetes.Clientset, error) {
	config, err := m.ClientConfig()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	config.QPS = -1 // priority and fairness of the server limits the rate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}
