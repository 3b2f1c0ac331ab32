// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/scenario"
)

// Shell starts the cluster of the main job without the modules' controllers, waits until its operators have rolled out,
// and runs a shell on it until that exits or ctx ends. The shell's PATH has kubectl, kubectl-sno, sno-tests, and oc as
// another name of kubectl. Options.Out has the progress. The error of a shell that fails is an *exec.ExitError.
func Shell(ctx context.Context, options Options, shell Bash) error {
	s, err := scenario.Lookup(options.Scenario)
	if err != nil {
		return err
	}
	options.Out = &synchronized{out: options.Out}
	plugin, err := programs.Build(ctx, programs.KubectlSNO, options.Out)
	if err != nil {
		return err
	}
	tests, err := programs.Build(ctx, programs.SNOTests, options.Out)
	if err != nil {
		return err
	}
	node, err := assets.EnsureNode(ctx, options.Out)
	if err != nil {
		return fmt.Errorf("get kubectl: %w", err)
	}
	kubectl := node.Program("kubectl")
	shell.Programs = map[string]string{"kubectl": kubectl, "oc": kubectl, programs.KubectlSNO.Name: plugin, programs.SNOTests.Name: tests}

	j := &job{options: options, scenario: s}
	if err := j.start(ctx); err != nil {
		return err
	}
	defer j.env.Stop()
	if err := j.env.WhileOperatorsRun(ctx, j.installed); err != nil {
		return err
	}
	shell.Scratch = filepath.Join(j.env.Cluster.Dir(), "shell")
	if err := os.Mkdir(shell.Scratch, 0o700); err != nil {
		return fmt.Errorf("make the folder of the shell: %w", err)
	}
	// What kubectl remembers of another cluster on the same port is wrong here, and so may be a person's own defaults.
	shell.Environment = []string{"KUBECONFIG=" + j.env.Cluster.KubeconfigPath(), "KUBECACHEDIR=" + filepath.Join(shell.Scratch, "cache"), "KUBERC=off"}
	j.heading("A shell on the cluster, which is removed when the shell exits")
	return shell.Run(ctx) //nolint:wrapcheck // the exit code is the caller's
}

// installed brings what the modules find on every installation, and waits until the operators have rolled out.
func (j *job) installed(ctx context.Context) error {
	for _, module := range framework.AllModules() {
		if err := j.env.Prepare(ctx, module); err != nil {
			return err
		}
	}
	for _, role := range []string{"master", "worker"} {
		if err := j.installPool(ctx, role); err != nil {
			return err
		}
	}
	if j.scenario.Pool != scenario.PoolNone {
		if _, err := j.router.settled(ctx, "", j.scenario.PendingUntilDay2); err != nil {
			return err
		}
	}
	_, err := j.operandsRolledOut(ctx)
	return err
}

// installPool brings the MachineConfigPool of a role, with nothing to update.
func (j *job) installPool(ctx context.Context, role string) error {
	pool := &unstructured.Unstructured{}
	err := pool.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool","metadata":{"name":%q},
		"spec":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/%s":""}}}}`, role, role))
	if err == nil {
		err = j.kube.Create(ctx, pool, client.FieldOwner(scenario.InstallerManager))
	}
	if err == nil {
		conditions, since := []any{}, pool.GetCreationTimestamp().UTC().Format(time.RFC3339)
		for kind, status := range map[string]string{"Updated": "True", "Updating": "False", "Degraded": "False"} {
			conditions = append(conditions, map[string]any{"type": kind, "status": status, "reason": "", "message": "", "lastTransitionTime": since})
		}
		pool.Object["status"] = map[string]any{"observedGeneration": pool.GetGeneration(), "conditions": conditions}
		err = j.kube.Status().Update(ctx, pool, client.FieldOwner("machine-config-controller"))
	}
	if err != nil {
		return fmt.Errorf("install MachineConfigPool %s: %w", role, err)
	}
	return nil
}
