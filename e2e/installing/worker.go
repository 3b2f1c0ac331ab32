// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/machineconfigserver"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/nodemachine"
)

const workerName = "edge-2"

func workerMachine(config nodemachine.Config) string { return config.Name + "-worker" }

// machineConfigServer adds what an OpenShift cluster has from its start and profile kubernetes does not need: the CA of
// the machine-config server, which outlives the bootstrap phase, and the server's certificate (R-WRK-1), as sno-install
// makes them in profile openshift.
func (s *site) machineConfigServer(ctx context.Context) error {
	config, err := os.ReadFile(s.path("sno/install-config.yaml"))
	if err != nil {
		return fmt.Errorf("read the install config: %w", err)
	}
	if err := s.write(map[string]string{"openshift/install-config.yaml": string(config)}); err != nil {
		return err
	}
	var output bytes.Buffer
	quiet := *s
	quiet.progress = &output
	if err := quiet.run(ctx, "create", "single-node-ignition-config", "--dir", "openshift", "--program-in-image",
		"--release-image", "registry.example.com/release@sha256:"+strings.Repeat("0", 64), "--master-ignition", "https://192.0.2.1/master.ign"); err != nil {
		return fmt.Errorf("%w\n%s", err, &output)
	}
	made, err := filepath.Glob(s.path("openshift/sno-install-state/manifests/*_machine-config-server-*.yaml"))
	if err != nil || len(made) != 3 {
		return fmt.Errorf("%w: the CA, its bundle and the certificate of the machine-config server: %v: %w", errCommand, made, err)
	}
	for _, file := range made {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		if err := s.write(map[string]string{filepath.Join("sno/manifests", filepath.Base(file)): string(content)}); err != nil {
			return err
		}
	}
	return nil
}

// worker adds a machine on day 2 (R-WRK-1): it boots from worker.ign, is approved from an inventory (R-APP-2), and runs
// pods.
func worker(ctx context.Context, m *Machine) error {
	j, err := newJoiner(ctx, m)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"nothing is left of an earlier run", j.clear},
		{"the machine-config server serves the config of workers", j.serve},
		{"worker.ign is the same as at the installation", j.create},
		{"a machine boots from it with the config of workers", j.boot},
		{"its request is pending while it is not in the inventory", j.requestNotInInventory},
		{"its request is approved from the inventory, and no hostile request", j.admit},
		{"the node is Ready", j.ready},
		{"a pod runs there; its logs cannot be read without a serving certificate", j.runPod},
		{"the serving certificate is approved from the inventory, and no hostile request", j.certify},
		{"the pod's logs can be read", j.logs},
		{"both are back after a restart, without a new request", j.restart},
		{"hostile requests are still pending", j.pending},
	} {
		if err := part.do(ctx); err != nil {
			return err
		}
		m.logf("  %s", part.what)
	}
	return nil
}

// serve runs the stand-in of the machine-config server on the control-plane node, with the config of pool worker.
func (j *joiner) serve(ctx context.Context) error {
	binary, err := programs.Build(ctx, programs.MachineConfigServer, j.m.Config.Progress)
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the machine-config server: %w", err)
	}
	pool, err := j.pool(ctx)
	if err != nil {
		return err
	}
	pools, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: machineconfigserver.Namespace, Name: machineconfigserver.PoolsName},
		Data:       map[string]string{"worker.ign": string(pool)},
	})
	if err != nil {
		return fmt.Errorf("encode the config of workers: %w", err)
	}
	manifest := string(pools) + "---\n" + strings.ReplaceAll(machineconfigserver.Manifest, "NODE", hostname)
	if err := j.m.node.Put(ctx, nodemachine.File{Path: "opt/check/machine-config-server", Mode: 0o755, Content: program},
		nodemachine.File{Path: "opt/check/machine-config-server.yaml", Mode: 0o600, Content: []byte(manifest)}); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return j.m.wait(ctx, check{"the machine-config server is ready", client + "apply --filename=/opt/check/machine-config-server.yaml && " +
		client + "rollout status --timeout=5s --namespace=" + machineconfigserver.Namespace + " daemonset/" + machineconfigserver.Name})
}

// pool returns the config of workers: this node's kubelet with a CA file of its own, as workers have no static pods.
func (j *joiner) pool(ctx context.Context) ([]byte, error) {
	unit, err := j.m.node.Exec(ctx, "cat", "/etc/systemd/system/kubelet.service")
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	text, err := j.m.node.Exec(ctx, "cat", "/etc/kubernetes/kubelet.conf")
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	var kubelet map[string]any
	if err := yaml.Unmarshal([]byte(text), &kubelet); err != nil {
		return nil, fmt.Errorf("read the kubelet's configuration: %w", err)
	}
	const authorityFile = "/etc/kubernetes/kubelet-ca.crt"
	kubelet["authentication"] = map[string]any{
		"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": authorityFile},
	}
	configuration, err := yaml.Marshal(kubelet)
	if err != nil {
		return nil, fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	authority, err := j.caBundle(ctx, "openshift-config-managed", "kube-apiserver-client-ca")
	if err != nil {
		return nil, err
	}
	enabled, mode := true, 0o755
	pool := types.Config{
		Ignition: types.Ignition{Version: "3.2.0"},
		Storage: types.Storage{
			Directories: []types.Directory{{Node: types.Node{Path: "/etc/kubernetes/manifests"}, DirectoryEmbedded1: types.DirectoryEmbedded1{Mode: &mode}}},
			Files: []types.File{
				machineconfigserver.File("/etc/kubernetes/kubelet.conf", 0o644, configuration),
				machineconfigserver.File("/etc/kubernetes/kubelet.conf.d/10-machine.conf", 0o644, []byte(kubeletDropIn)),
				machineconfigserver.File(authorityFile, 0o644, []byte(authority)),
			},
		},
		Systemd: types.Systemd{Units: []types.Unit{{Name: "kubelet.service", Enabled: &enabled, Contents: &unit}}},
	}
	return json.Marshal(pool) //nolint:wrapcheck // it can be encoded
}

var errWorkerConfig = errors.New("worker.ign differs from the one that was made with the cluster")

// create makes worker.ign with the CA of the cluster, as on day 2.
func (j *joiner) create(ctx context.Context) error {
	bundle, err := j.caBundle(ctx, machineconfigserver.Namespace, "machine-config-server-ca")
	if err != nil {
		return err
	}
	site := j.m.site
	if err := site.write(map[string]string{"worker/ca.crt": bundle}); err != nil {
		return err
	}
	if err := site.run(ctx, "create", "worker-ignition", "--dir", "worker", "--host", apiInternal, "--ca", "worker/ca.crt"); err != nil {
		return err
	}
	before, err := os.ReadFile(site.path("openshift/worker.ign"))
	if err != nil {
		return fmt.Errorf("read the config of the installation: %w", err)
	}
	now, err := os.ReadFile(site.path("worker/worker.ign"))
	if err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	if !bytes.Equal(before, now) {
		return fmt.Errorf("%w:\n%s\n%s", errWorkerConfig, before, now)
	}
	return nil
}

// boot boots a machine from it. The config does not contain the hostname, because all workers share it.
func (j *joiner) boot(ctx context.Context) error {
	medium, err := j.m.site.medium("medium-worker", "worker/worker.ign")
	if err != nil {
		return err
	}
	config := j.m.Config
	config.Name, config.Network, config.Hostname, config.Medium = workerMachine(j.m.Config), j.m.Config.Name, workerName, medium
	j.began = time.Now()
	if j.m.worker, err = nodemachine.Create(ctx, config); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := j.m.worker.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return j.m.wait(ctx, check{"Ignition has fetched the config of workers", client + "logs --namespace=" + machineconfigserver.Namespace + " daemonset/" +
		machineconfigserver.Name + " | grep 'Served pool=worker from=" + j.m.worker.Address() + `:[0-9]* userAgent="\?Ignition/'`})
}
