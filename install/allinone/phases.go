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
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Limits of the phases. They are for what does not end, not for what is slow.
const (
	short = 10 * time.Minute
	long  = 30 * time.Minute
	// soon is for what is renewed on a node that runs: the next run begins with the disk, where something else may be due by then.
	soon = time.Minute
)

// Machine returns the machine as the other functions need it. What is not set is up to the caller.
func Machine(m controlplane.Machine) *controlplane.Machine {
	m.SettingsFile, m.Manifests, m.Rendered = node.AllInOneSettings, node.AllInOneManifests, node.AllInOneRendered
	return &m
}

// Phases returns what makes a machine a cluster of its own, in order (R-AIO-2, R-AIO-3, R-AIO-5):
//
//	render            the static pods are rendered
//	static-pods       and laid, with what the kubelet needs to ask for its certificate
//	api               the API server is ready
//	apply-manifests   every manifest is applied, but for what only operators act on
//	join              the kubelet has its certificates, and the node is Ready
//	finish            which is written down: later boots need none of this
func Phases(m *controlplane.Machine) []phase.Phase {
	return []phase.Phase{
		{Name: "render", Limit: short, Done: m.IsRendered, Run: func(ctx context.Context, p *phase.Progress) error { return m.Render(ctx, p, "") }},
		{Name: "static-pods", Limit: short, Run: func(context.Context, *phase.Progress) error { return lay(m) }},
		{Name: "api", Limit: long, Run: m.WaitForAPI},
		{Name: "apply-manifests", Limit: long, Run: func(ctx context.Context, p *phase.Progress) error { return apply(ctx, m, p) }},
		{Name: "join", Limit: long, Run: func(ctx context.Context, p *phase.Progress) error { return approve(ctx, m, p) }},
		{Name: "finish", Limit: short, Done: m.Has(node.AllInOneDone), Run: func(context.Context, *phase.Progress) error {
			return m.Lay(files.File{Path: node.AllInOneDone, Mode: 0o600})
		}},
	}
}

// Rotate returns what renews the certificates of a node that runs (R-AIO-7):
//
//	rotate            what is due is renewed
//	static-pods       and laid: the kubelet starts the pods anew of which a revision has changed
//	api               the API server is ready
//	apply-manifests   what has changed is applied
//	kubelet           the kubelet learns how it knows the API server from now on
//	join              it has certificates, and the node is Ready
//
// The kubelet asks for its own certificates. kube-controller-manager approves only a client certificate, and that only while the one before it
// lasts, so the others are approved here.
func Rotate(m *controlplane.Machine, k Kubelet) []phase.Phase {
	return append(onDisk(m),
		phase.Phase{Name: "api", Limit: soon, Run: m.WaitForAPI},
		phase.Phase{Name: "apply-manifests", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return apply(ctx, m, p) }},
		phase.Phase{Name: "kubelet", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return k.learn(ctx, m, p) }},
		phase.Phase{Name: "join", Limit: soon, Run: func(ctx context.Context, p *phase.Progress) error { return approve(ctx, m, p) }},
	)
}

// RotateBefore returns what renews the certificates of a node before its kubelet starts, so that what was off when they ended starts with new ones. A
// kubelet that has started pods with the old ones could not end them: it would wait for an API server that does not come.
func RotateBefore(m *controlplane.Machine) []phase.Phase {
	return append(onDisk(m), phase.Phase{Name: "kubelet", Limit: short, Run: func(context.Context, *phase.Progress) error {
		access, err := accessOf(m)
		if err != nil {
			return err
		}
		return m.Lay(access...) //nolint:wrapcheck // it names the file
	}})
}

// onDisk needs no API server.
func onDisk(m *controlplane.Machine) []phase.Phase {
	return []phase.Phase{
		{Name: "rotate", Limit: short, Run: func(ctx context.Context, _ *phase.Progress) error { return m.Rotate(ctx) }},
		{Name: "static-pods", Limit: short, Run: func(context.Context, *phase.Progress) error { return m.LayPods() }},
	}
}

// lay lays the static pods and what the kubelet needs. It starts when it finds its kubeconfig, and reads its name and addresses then.
func lay(m *controlplane.Machine) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := m.Lay(kubelet.Environment(s)); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := m.LayPods(); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	access, err := accessOf(m)
	if err != nil {
		return err
	}
	return m.Lay(access...) //nolint:wrapcheck // it names the file
}

func apply(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	_, err := m.Apply(ctx, p)
	return err //nolint:wrapcheck // it names every manifest
}

// approve approves the kubelet's two requests (R-AIO-6, R-AIO-9).
func approve(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	created, err := s.CreatedAt()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", m.SettingsFile, err, phase.ErrInput)
	}
	config, err := m.Client()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	config.QPS = -1 // the server decides
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	return join.Approve(ctx, join.Options{ //nolint:wrapcheck // it names the node
		Client: client, Root: m.Root, Name: s.Name, Addresses: s.Addresses, Since: created, Interval: m.Interval, Now: time.Now,
		Restart: func(ctx context.Context) error { return m.Systemctl(ctx, "restart", "kubelet.service") },
	}, p)
}
