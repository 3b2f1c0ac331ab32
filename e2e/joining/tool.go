// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
)

// InventoryEntry is a node of an inventory.
type InventoryEntry struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses,omitempty"`
	Window    *Window  `json:"window,omitempty"`
}

// Window is when a node may join.
type Window struct {
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
}

// OpenWindow returns a window that is open now.
func OpenWindow() *Window {
	now := time.Now().UTC().Truncate(time.Second)
	return &Window{now.Add(-time.Minute), now.Add(time.Hour)}
}

// Tool is the outside tool with an inventory and the rights of config/approve.
type Tool struct {
	cluster                       *embedded.Cluster
	binary, kubeconfig, inventory string
}

// NewTool builds the tool and applies its rights.
func NewTool(ctx context.Context, c *embedded.Cluster) *Tool {
	GinkgoHelper()
	binary := suite.Must(programs.Build(ctx, programs.Approve, GinkgoWriter))
	Expect(c.EnsureNamespace(ctx, framework.SystemNamespace)).To(Succeed())
	ApplyRights(ctx, c.Client())
	return &Tool{c, binary, suite.Must(c.KubeconfigForServiceAccount(ctx, framework.SystemNamespace, toolAccount)), filepath.Join(c.Dir(), "nodes.yaml")}
}

// ApplyRights applies the tool's config/approve.
func ApplyRights(ctx context.Context, kube client.Client) {
	GinkgoHelper()
	Expect(framework.ApplyConfig(ctx, kube, rightsOf(suite.Must(programs.Root(ctx))))).To(Succeed())
}

func rightsOf(root string) string {
	return filepath.Join(root, string(framework.Approver), "config", "approve")
}

// ToolAt returns the tool at binary, with a kubeconfig and an inventory in a folder. It can only RunOnce, because it
// has no cluster that stops it.
func ToolAt(binary, kubeconfig, folder string) *Tool {
	return &Tool{binary: binary, kubeconfig: kubeconfig, inventory: filepath.Join(folder, "nodes.yaml")}
}

// toolAccount is the tool's account in config/approve.
const toolAccount = "sno-approve"

// ToolUser is the user name of the tool.
const ToolUser = "system:serviceaccount:" + framework.SystemNamespace + ":" + toolAccount

// WriteInventory replaces the tool's inventory.
func (t *Tool) WriteInventory(nodes ...InventoryEntry) {
	GinkgoHelper()
	text := suite.Must(json.Marshal(map[string]any{"version": 1, "nodes": nodes})) // which is YAML too
	Expect(os.WriteFile(t.inventory, text, 0o600)).To(Succeed())
}

func (t *Tool) arguments(mode string) []string {
	return []string{"--inventory=" + t.inventory, "--kubeconfig=" + t.kubeconfig, "-o=json", mode}
}

// Start runs the tool until it is terminated.
func (t *Tool) Start(ctx context.Context) *embedded.Component {
	GinkgoHelper()
	return suite.Must(t.cluster.Run(ctx, programs.Approve.Name, t.binary, t.arguments("--watch")...))
}

// RequestResult is the tool's outcome for a request, such as approved, and its reason.
type RequestResult struct{ Outcome, Reason string }

// RunOnce runs the tool once and returns its exit code and its results by request.
func (t *Tool) RunOnce(ctx context.Context) (code int, results map[string]RequestResult, err error) {
	command := exec.CommandContext(ctx, t.binary, t.arguments("--once")...)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, nil, fmt.Errorf("run the tool: %w", err)
	}
	results = map[string]RequestResult{}
	for line := range strings.Lines(string(out)) {
		var f struct{ Request, Outcome, Reason string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return 0, nil, fmt.Errorf("read the tool's output: %w\n%s\n%s", err, out, &errs)
		}
		if f.Request != "" {
			results[f.Request] = RequestResult{f.Outcome, f.Reason}
		}
	}
	if code = command.ProcessState.ExitCode(); code > 1 {
		return code, results, fmt.Errorf("the tool ends with exit code %d: %s", code, &errs)
	}
	return code, results, nil
}
