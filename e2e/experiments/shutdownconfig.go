// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

const kubeletConfigFile = "/var/lib/kubelet/config.yaml"

type dropIn struct{ path, content string }

// shutdownConfig is what a machine-config operator makes of a decision: fields of the kubelet's configuration, and a
// file for logind.
type shutdownConfig struct {
	fields map[string]any
	file   dropIn
}

// decide returns the module's decision for a cluster with only this node and its pods.
func (g *goingDown) decide(ctx context.Context) (shutdownConfig, error) {
	kube := g.Kind.Clientset().CoreV1()
	node, err := kube.Nodes().Get(ctx, g.node, metav1.GetOptions{})
	if err != nil {
		return shutdownConfig{}, fmt.Errorf("read node %s: %w", g.node, err)
	}
	pods, err := kube.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + g.node})
	if err != nil {
		return shutdownConfig{}, fmt.Errorf("list the pods of node %s: %w", g.node, err)
	}
	return decideShutdown(*node, pods.Items)
}

func decideShutdown(node corev1.Node, pods []corev1.Pod) (shutdownConfig, error) {
	node.Labels = map[string]string{machineconfig.MasterRole: ""}
	pool := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool, Labels: map[string]string{machineconfig.MasterPoolLabel: ""}}}
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	decision := machineconfig.Decide(machineconfig.Inputs{
		Cluster: &topology.Cluster{ControlPlane: topology.ReadingOf(configv1.SingleReplicaTopologyMode), Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode)},
		Nodes:   []corev1.Node{node}, Pods: pods, Pools: []mcfgv1.MachineConfigPool{pool},
	})
	if decision.KubeletConfig == nil || decision.MachineConfig == nil {
		return shutdownConfig{}, fmt.Errorf("%w: the module returns none: %v", errNotLoaded, decision.Result)
	}
	var c shutdownConfig
	if err := json.Unmarshal(decision.KubeletConfig.Spec.KubeletConfig.Raw, &c.fields); err != nil {
		return c, fmt.Errorf("%w: %w", errNotLoaded, err)
	}
	var err error
	c.file, err = onlyFile(decision.MachineConfig.Spec.Config.Raw)
	return c, err
}

func onlyFile(raw []byte) (dropIn, error) {
	config, _, err := ignition.Parse(raw)
	if err != nil {
		return dropIn{}, fmt.Errorf("%w: %w", errNotLoaded, err)
	}
	if len(config.Storage.Files) != 1 || config.Storage.Files[0].Contents.Source == nil {
		return dropIn{}, fmt.Errorf("%w: not one file: %s", errNotLoaded, raw)
	}
	content, err := dataurl.DecodeString(*config.Storage.Files[0].Contents.Source)
	if err != nil {
		return dropIn{}, fmt.Errorf("%w: %w", errNotLoaded, err)
	}
	return dropIn{config.Storage.Files[0].Path, string(content.Data)}, nil
}

func merge(text string, fields map[string]any) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("read the kubelet's configuration: %w", err)
	}
	for name, value := range fields {
		config[name] = value
	}
	merged, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	return merged, nil
}

// configure applies the configuration to the kubelet and logind, checks that they use it, and returns a function that
// restores the former one.
func (g *goingDown) configure(ctx context.Context, c shutdownConfig) (restore func() error, err error) {
	before, err := g.Kind.Exec(ctx, g.node, "cat", kubeletConfigFile)
	if err != nil {
		return nil, err
	}
	restore = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
		defer cancel()
		_, gone := g.Kind.Exec(ctx, g.node, "rm", "--force", c.file.path)
		return errors.Join(gone, g.write(ctx, kubeletConfigFile, []byte(before+"\n")), g.reload(ctx))
	}
	merged, err := merge(before, c.fields)
	if err == nil {
		err = g.write(ctx, kubeletConfigFile, merged)
	}
	if err == nil {
		err = g.write(ctx, c.file.path, []byte(c.file.content))
	}
	if err == nil {
		err = g.reload(ctx)
	}
	if err == nil {
		err = until(ctx, "the node uses the configuration", waitTimeout, func(ctx context.Context) error { return g.taken(ctx, c) })
	}
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

func (g *goingDown) write(ctx context.Context, file string, content []byte) error {
	_, err := g.Kind.Engine().Pipe(ctx, bytes.NewReader(content),
		"exec", "--interactive", g.node, "sh", "-c", `mkdir --parents "$1" && cat >"$2"`, "sh", path.Dir(file), file)
	return err
}

func (g *goingDown) reload(ctx context.Context) error {
	_, err := g.Kind.Exec(ctx, g.node, "systemctl", "restart", "systemd-logind", "kubelet")
	return err
}

// taken checks that the kubelet reports the fields and inhibits shutdowns, and that logind permits the delay.
func (g *goingDown) taken(ctx context.Context, c shutdownConfig) error {
	raw, err := g.Kind.Clientset().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", g.node, "proxy", "configz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the kubelet's configuration: %w", err)
	}
	if err := runsWith(raw, c.fields); err != nil {
		return err
	}
	held, err := g.Kind.Exec(ctx, g.node, "systemd-inhibit", "--list", "--no-pager")
	if err != nil {
		return err
	}
	if !strings.Contains(held, "kubelet") {
		return fmt.Errorf("%w: the kubelet does not inhibit shutdowns", errNotLoaded)
	}
	const logind = "org.freedesktop.login1"
	property, err := g.Kind.Exec(ctx, g.node, "busctl", "get-property", logind, "/org/freedesktop/login1", logind+".Manager", "InhibitDelayMaxUSec")
	if err != nil {
		return err
	}
	return delayPermitted(property, c.fields)
}

// totalField is also part of logind's configuration.
const totalField = "shutdownGracePeriod"

// runsWith compares the configuration that the kubelet reports with fields that are durations.
func runsWith(configz []byte, fields map[string]any) error {
	var reported struct {
		Config map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(configz, &reported); err != nil {
		return fmt.Errorf("%w: %w", errNotLoaded, err)
	}
	for name, value := range fields {
		want, err := durationOf(value)
		if err != nil {
			return err
		}
		if got, err := durationOf(reported.Config[name]); err != nil || got != want {
			return fmt.Errorf("%w: %s is %v, not %s", errNotLoaded, name, reported.Config[name], want)
		}
	}
	return nil
}

// delayPermitted compares logind's property, such as "t 60000000", with the kubelet's total period.
func delayPermitted(property string, fields map[string]any) error {
	want, err := durationOf(fields[totalField])
	if err != nil {
		return err
	}
	var microseconds int64
	if _, err := fmt.Sscanf(property, "t %d", &microseconds); err != nil || time.Duration(microseconds)*time.Microsecond != want {
		return fmt.Errorf("%w: logind permits a delay of %q, want %s", errNotLoaded, property, want)
	}
	return nil
}

func durationOf(value any) (time.Duration, error) {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %v is not a duration", errNotLoaded, value)
	}
	return d, nil
}
