// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// input is the input folder of sno-render, in one file.
//
//go:embed input/cluster.yaml
var input string

// apiInternal is the internal name of the API server in the input.
const apiInternal = "api-int.machine.example.com"

var errRendered = errors.New("the output of sno-render is incomplete")

var errNotApproved = errors.New("the node's certificate is not approved")

// Rendering is the cost of a process of sno-render.
type Rendering struct {
	Took time.Duration
	// Processor is its processor time, which does not depend on load.
	Processor time.Duration
	// Memory is its maximum in bytes.
	Memory int64
}

func (r Rendering) String() string {
	return fmt.Sprintf("%s (%s of processors), %d MiB", seconds(r.Took), seconds(r.Processor), r.Memory/mebi)
}

// Render is the method of sno-render.
type Render struct {
	// Program is the path of sno-render, and Approve that of the outside tool, which approves the kubelet.
	Program, Approve string
	Version          string
	// Encryption is the type in the input's APIServer.
	Encryption string
	Folder     string

	Cost Rendering
}

// Method returns the steps that start a control plane from the output of sno-render.
func (r *Render) Method() Method {
	return Method{
		Name: "sno-render", Prepare: r.prepare, Connect: r.connect, Join: r.join,
		Begin: func(ctx context.Context, n *Node) error {
			_, err := n.Exec(ctx, "systemctl", "start", "kubelet.service")
			return err
		},
		Etcd: etcdFiles{
			authority:   "/etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/configmaps/etcd-serving-ca/ca-bundle.crt",
			certificate: "/etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/secrets/etcd-client/tls.crt",
			key:         "/etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/secrets/etcd-client/tls.key",
		},
	}
}

func (r *Render) in() string { return filepath.Join(r.Folder, "input") }
func (r *Render) out(path ...string) string {
	return filepath.Join(append([]string{r.Folder, "output"}, path...)...)
}
func (r *Render) auth(path string) string      { return r.out("auth", path) }
func (r *Render) onMachine(path string) string { return r.out("files", path) }

// prepare renders for this machine, and writes to its disk what an installer does.
func (r *Render) prepare(ctx context.Context, n *Node) error {
	if err := os.RemoveAll(r.Folder); err != nil {
		return fmt.Errorf("clear the folder of sno-render: %w", err)
	}
	if err := os.MkdirAll(r.in(), 0o755); err != nil {
		return fmt.Errorf("make the folder of sno-render: %w", err)
	}
	text := strings.NewReplacer("NODE", n.Name(), "ADDRESS", n.Address(), "ENCRYPTION", r.Encryption).Replace(input)
	if err := os.WriteFile(filepath.Join(r.in(), "cluster.yaml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the input of sno-render: %w", err)
	}
	images, err := n.Exec(ctx, "kubeadm", "config", "images", "list", "--kubernetes-version="+r.Version)
	if err != nil {
		return err
	}
	if err := r.render(ctx, strings.Fields(images)); err != nil {
		return err
	}
	n.logf("sno-render took %s", r.Cost)
	files, err := nodemachine.Folder(r.out("files"))
	if err != nil {
		return err
	}
	more, err := r.ofKubelet()
	if err != nil {
		return err
	}
	if err := n.Put(ctx, append(files, more...)...); err != nil {
		return err
	}
	// An installer provides this name of the cluster's DNS.
	_, err = n.Exec(ctx, "sh", "-c", `echo "$1 $2" >>/etc/hosts`, "sh", n.Address(), apiInternal)
	return err
}

const mebi = 1 << 20

func (r *Render) render(ctx context.Context, images []string) error {
	args := []string{"--input", r.in(), "--output", r.out(), "--profile", "kubernetes", "--kubernetes-version", strings.TrimPrefix(r.Version, "v")}
	for _, image := range images {
		switch name := path.Base(strings.Split(image, ":")[0]); name {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
			args = append(args, "--image", name+"="+image)
		}
	}
	r.Cost = Rendering{}
	for try := range tries {
		if err := os.RemoveAll(r.out()); err != nil {
			return fmt.Errorf("clear the output of sno-render: %w", err)
		}
		cost, err := run(ctx, r.Program, args)
		if err != nil {
			return err
		}
		if try == 0 || cost.Took < r.Cost.Took {
			cost.Memory = max(cost.Memory, r.Cost.Memory)
			r.Cost = cost
		}
		if r.Cost.Took < MaxRendering {
			break
		}
	}
	return nil
}

// tries limits the runs of sno-render until its bound is met: the time to generate RSA keys is random.
const tries = 3

func run(ctx context.Context, program string, args []string) (Rendering, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	err := cmd.Run()
	cost := Rendering{Took: time.Since(began)}
	if err != nil {
		return cost, fmt.Errorf("sno-render %s: %w:\n%s", strings.Join(args, " "), err, strings.TrimSpace(output.String()))
	}
	cost.Processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		cost.Memory = usage.Maxrss << 10 // Linux counts in KiB
	}
	return cost, nil
}

func (r *Render) ofKubelet() ([]nodemachine.File, error) {
	bootstrap, err := os.ReadFile(r.auth("kubeconfig-kubelet"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRendered, err)
	}
	// The CA of the API server's clients is also that of the kubelet's.
	authorities, err := os.ReadFile(r.onMachine("etc/kubernetes/static-pod-resources/kube-apiserver-certs/configmaps/client-ca/ca-bundle.crt"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRendered, err)
	}
	config, err := kubelet(map[string]any{
		"clusterDNS": []string{"172.30.0.10"}, "clusterDomain": "cluster.local",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"},
		},
		"authorization": map[string]any{"mode": "Webhook"},
	})
	if err != nil {
		return nil, err
	}
	admin, err := os.ReadFile(r.auth("kubeconfig-localhost"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRendered, err)
	}
	return []nodemachine.File{
		// For interactive use of the machine.
		{Path: "root/.kube/config", Mode: 0o600, Content: admin},
		{Path: "etc/kubernetes/bootstrap-kubelet.conf", Mode: 0o600, Content: bootstrap},
		{Path: "etc/kubernetes/kubelet-ca.crt", Mode: 0o644, Content: authorities},
		{Path: "var/lib/kubelet/config.yaml", Mode: 0o600, Content: config},
	}, nil
}

// connect uses the administrator's credentials from outside of the machine.
func (r *Render) connect(_ context.Context, n *Node) error {
	config, err := clientcmd.BuildConfigFromFlags("", r.auth("kubeconfig-localhost"))
	if err != nil {
		return fmt.Errorf("%w: %w", errRendered, err)
	}
	// The certificate is for localhost.
	config.Host, config.ServerName = "https://"+n.apiServer(), "localhost"
	n.Admin = config
	return nil
}

// join creates the objects that an installer creates, with which the kubelet can request its certificate, and has the
// outside tool approve it.
func (r *Render) join(ctx context.Context, n *Node) error {
	objects, err := readManifests(os.DirFS(r.out("manifests")))
	if err != nil {
		return fmt.Errorf("%w: %w", errRendered, err)
	}
	crds, err := definitionsFor(ctx, objects)
	if err != nil {
		return err
	}
	if err := n.create(ctx, append(crds, objects...)); err != nil {
		return err
	}
	status, err := readManifests(os.DirFS(r.out("manifests", "status")))
	if err != nil {
		return fmt.Errorf("%w: status: %w", errRendered, err)
	}
	if err := n.applyStatus(ctx, status); err != nil {
		return err
	}
	n.logf("%d objects are created, and %d CustomResourceDefinitions for them; status is written %d times", len(objects), len(crds), len(status))
	return r.admit(ctx, n)
}

// admit runs the outside tool until it has approved the request of the node in its inventory.
func (r *Render) admit(ctx context.Context, n *Node) error {
	admin, err := clientcmd.LoadFromFile(r.auth("kubeconfig-localhost"))
	if err != nil {
		return fmt.Errorf("%w: %w", errRendered, err)
	}
	for _, cluster := range admin.Clusters {
		cluster.Server, cluster.TLSServerName = n.Admin.Host, n.Admin.ServerName
	}
	kubeconfig := filepath.Join(r.Folder, "approver.kubeconfig")
	if err := clientcmd.WriteToFile(*admin, kubeconfig); err != nil {
		return fmt.Errorf("write the kubeconfig of the outside tool: %w", err)
	}
	tool := joining.ToolAt(r.Approve, kubeconfig, r.Folder)
	if err := tool.WriteInventory(joining.Entry{Name: n.Name(), Addresses: []string{n.Address()}, Window: joining.OpenWindow()}); err != nil {
		return err //nolint:wrapcheck // complete
	}
	return until(ctx, "the outside tool has approved the node's certificate", func(ctx context.Context) error {
		_, results, err := tool.RunOnce(ctx)
		if err != nil {
			return err //nolint:wrapcheck // complete
		}
		for request, s := range results {
			if s.Outcome == "approved" {
				n.logf("the outside tool has approved %s: %s", request, s.Reason)
				return nil
			}
		}
		return fmt.Errorf("%w: the tool reports %v", errNotApproved, results)
	})
}

func readManifests(folder fs.FS) ([]object, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller wraps it
	}
	var objects []object
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller wraps it
		}
		its, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, its...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%w: there are no manifests", errRendered)
	}
	return objects, nil
}
