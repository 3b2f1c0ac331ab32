// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	render "github.com/solonode/sno/render/command"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Machine has the paths and programs of the machine's control plane. Paths are relative to Root.
type Machine struct {
	Root string
	// SettingsFile is the settings file, Manifests the input and Rendered the output of sno-render.
	SettingsFile, Manifests, Rendered string
	Host                              func() (Host, error)
	Output                            io.Writer
	Systemctl                         func(ctx context.Context, arguments ...string) error
	Interval                          time.Duration
	// ClockIsRight has Rotate renew certificates that are not valid yet, also if no time server sets the clock.
	ClockIsRight bool
}

// Path returns the path below Root.
func (m *Machine) Path(name string) string { return filepath.Join(m.Root, name) }

// Settings returns the settings. If they cannot be read, the error is ErrInput.
func (m *Machine) Settings() (*node.Settings, error) {
	s, err := node.Read(m.Path(m.SettingsFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	return s, nil
}

// FileExists returns a condition that reports whether a file exists. It is for files that are written atomically.
func (m *Machine) FileExists(name string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		_, err := os.Stat(m.Path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err //nolint:wrapcheck // it names the file
	}
}

// WriteFiles writes files. Each is replaced atomically.
func (m *Machine) WriteFiles(list ...files.File) error {
	_, err := rotate.WriteChanged(m.Root, list)
	return err //nolint:wrapcheck // it names the file
}

var errRender = errors.New("cannot render the static pods")

const renderInput = 2

// IsRendered reports whether Render has finished.
func (m *Machine) IsRendered(ctx context.Context) (bool, error) {
	return m.FileExists(m.Rendered + "/sno-render.yaml")(ctx)
}

// Complete determines the name and addresses of the node, and returns the settings with them, which it writes.
func (m *Machine) Complete(ctx context.Context, p *phase.Progress) (*node.Settings, error) {
	s, err := m.Settings()
	if err != nil {
		return nil, err
	}
	if err := expired(s, time.Now()); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", m.SettingsFile, err, phase.ErrInput)
	}
	var completed node.Settings
	if err := p.Until(ctx, m.Interval, "the node's name and addresses", func(context.Context) error {
		host, err := m.Host()
		if err != nil {
			return err
		}
		completed, err = CompleteSettings(*s, host)
		return err
	}); err != nil {
		return nil, err
	}
	text, err := completed.Encode()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the settings
	}
	return &completed, m.WriteFiles(files.File{Path: m.SettingsFile, Mode: 0o600, Content: text})
}

// Render completes the settings and renders the static pods with sno-render (R-BIP-14, R-AIO-5).
func (m *Machine) Render(ctx context.Context, p *phase.Progress) error {
	s, err := m.Complete(ctx, p)
	if err != nil {
		return err
	}
	self, err := manifests.Node(s.Name, s.Addresses)
	if err != nil {
		return err //nolint:wrapcheck // it names the node
	}
	self.Path = m.Manifests + "/" + self.Path
	if err := m.WriteFiles(self); err != nil {
		return err
	}
	return m.runRender(ctx, m.arguments(s)...)
}

// ErrExpired is in the error of a config whose certificates ended before it was used.
var ErrExpired = errors.New("create the config again and boot the machine with it, or set the machine's clock")

func expired(s *node.Settings, now time.Time) error {
	created, err := s.CreatedAt()
	if err != nil {
		return err //nolint:wrapcheck // it names the field
	}
	validity, err := time.ParseDuration(s.Validity)
	if err != nil {
		return fmt.Errorf("%w: validity: %w", node.ErrSettings, err)
	}
	if s.Profile == string(inputs.OpenShift) {
		validity = min(validity, node.BootstrapValidity)
	}
	if end := created.Add(validity); !now.Before(end) {
		return fmt.Errorf("the certificates of the config have ended at %s, and the clock has %s: %w",
			end.Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrExpired)
	}
	return nil
}

// Rotate renews the certificates that are due in the output of sno-render (R-AIO-7).
func (m *Machine) Rotate(ctx context.Context) error {
	arguments := []string{"rotate", "--dir", m.Path(m.Rendered)}
	if m.ClockIsRight {
		arguments = append(arguments, "--clock-is-right")
	}
	return m.runRender(ctx, arguments...)
}

func (m *Machine) runRender(ctx context.Context, arguments ...string) error {
	var errs bytes.Buffer
	code := render.Main(ctx, arguments, m.Output, &errs)
	text := strings.TrimSpace(errs.String())
	switch {
	case code == 0:
		if text != "" {
			fmt.Fprintln(m.Output, text) // warnings
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errRender, context.Cause(ctx))
	case code == renderInput:
		return fmt.Errorf("%w: %s: %w", errRender, text, phase.ErrInput)
	}
	return fmt.Errorf("%w: %s", errRender, text)
}

func (m *Machine) arguments(s *node.Settings) []string {
	arguments := []string{
		"--input", m.Path(m.Manifests), "--output", m.Path(m.Rendered), "--replace", "--profile", s.Profile, "--validity", s.Validity, "--node", s.Name,
	}
	if s.KubernetesVersion != "" {
		arguments = append(arguments, "--kubernetes-version", s.KubernetesVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Images)) {
		arguments = append(arguments, "--image", name+"="+s.Images[name])
	}
	return arguments
}

// StaticPodFiles returns the files of the static pods, with their modes.
func (m *Machine) StaticPodFiles() ([]files.File, error) {
	root := m.Path(m.Rendered + "/files")
	var list []files.File
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		content, err := fs.ReadFile(tree, name)
		list = append(list, files.File{Path: name, Mode: info.Mode().Perm(), Content: content})
		return err //nolint:wrapcheck // it names the file
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", root, err)
	}
	return list, nil
}

// WriteStaticPods writes the static pods for the kubelet, their manifests last.
func (m *Machine) WriteStaticPods() error {
	list, err := m.StaticPodFiles()
	if err != nil {
		return err
	}
	return m.WriteFiles(list...)
}

// Kubeconfig is the administrator's kubeconfig on the machine itself, and KubeletKubeconfig the one with which its
// kubelet requests a certificate. Both are relative to the output of sno-render.
const (
	Kubeconfig        = "auth/kubeconfig-localhost"
	KubeletKubeconfig = "auth/kubeconfig-kubelet"
)

// ClientConfig returns the administrator's client config.
func (m *Machine) ClientConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", m.Path(path.Join(m.Rendered, Kubeconfig)))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// WaitForAPI waits until the API server is ready.
func (m *Machine) WaitForAPI(ctx context.Context, p *phase.Progress) error {
	return p.Until(ctx, m.Interval, "the API server", func(ctx context.Context) error {
		config, err := m.ClientConfig()
		if err != nil {
			return err
		}
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return fmt.Errorf("connect to the API server: %w", err)
		}
		return Ready(ctx, client.RESTClient())
	})
}

// Apply applies the manifests of folders, which include the user's (R-BIP-12). It returns the number of applied objects
// and statuses.
func (m *Machine) Apply(ctx context.Context, p *phase.Progress, folders ...string) (int, error) {
	config, err := m.ClientConfig()
	if err != nil {
		return 0, err
	}
	s, err := m.Settings()
	if err != nil {
		return 0, err
	}
	o := apply.Options{Config: config, Interval: m.Interval}
	for _, name := range folders {
		o.Folders = append(o.Folders, apply.Folder{Name: m.Path(name), FS: os.DirFS(m.Path(name)), Rendered: true})
	}
	if s.Profile == string(inputs.Kubernetes) {
		// Without operators these kinds have no effect. A user who needs one adds its definition (R-AIO-3).
		o.Optional = func(group string) bool { return strings.HasSuffix(group, ".openshift.io") }
	}
	report, err := apply.Run(ctx, o, p)
	for _, kept := range report.Kept {
		fmt.Fprintln(m.Output, "kept, since another client has changed it:", kept)
	}
	return report.Applied, err //nolint:wrapcheck // it names every manifest
}

// ErrNotReady is in the error of an API server that answers but is not ready.
var ErrNotReady = errors.New("not ready")

// Ready returns nil if the API server is ready, and otherwise an error with the failed checks.
func Ready(ctx context.Context, client rest.Interface) error {
	body, err := client.Get().AbsPath("/readyz").DoRaw(ctx)
	if err == nil {
		return nil
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		// "[-]etcd failed: reason withheld"
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %s", ErrNotReady, strings.Join(failed, ", "))
	}
	return err //nolint:wrapcheck // it names the URL
}
