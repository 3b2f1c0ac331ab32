// SPDX-License-Identifier: Apache-2.0

package allinone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// accessOf returns the kubeconfig with which the kubelet requests a certificate, and the bundle with which it verifies
// the API server.
func accessOf(m *controlplane.Machine) ([]files.File, error) {
	content, err := os.ReadFile(m.Path(path.Join(m.Rendered, controlplane.KubeletKubeconfig)))
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's kubeconfig: %w", err)
	}
	return kubelet.AccessFiles(content) //nolint:wrapcheck // it names the content
}

// Kubelet configures the access to the kubelet of the machine.
type Kubelet struct {
	HealthURL string
	// PodTimeout limits the wait for restarted static pods.
	PodTimeout time.Duration
}

// updateAccess replaces the kubelet's bundle and kubeconfig if they have changed, and restarts it. Pods keep running.
// The running kubelet has to restart changed static pods first: one that starts would start the new pods while the old
// ones hold their ports, and would end no pod before it has reached the API server.
func (k Kubelet) updateAccess(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	access, err := accessOf(m)
	if err != nil {
		return err
	}
	same, err := hasFiles(m, access)
	if err != nil {
		return err
	}
	if !same {
		if err := k.waitForPods(ctx, m, p); err != nil {
			return err
		}
		// The kubelet reads the files only when it starts, so a run that is interrupted here must leave it stopped.
		if err := m.Systemctl(ctx, "stop", kubelet.Unit); err != nil {
			return err
		}
		if err := m.WriteFiles(access...); err != nil {
			return err //nolint:wrapcheck // it names the file
		}
	}
	// An earlier run may have been interrupted after the stop.
	if err := m.Systemctl(ctx, "start", kubelet.Unit); err != nil {
		return err
	}
	return p.Until(ctx, m.Interval, "the kubelet", k.healthy) //nolint:wrapcheck // it names the kubelet
}

// waitForPods waits until the kubelet reports the current static pods, at most PodTimeout: a kubelet whose certificate
// or bundle has ended can report nothing before it restarts.
func (k Kubelet) waitForPods(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	waiting, cancel := context.WithTimeout(ctx, k.PodTimeout)
	defer cancel()
	err := p.Until(waiting, m.Interval, "static pods", func(ctx context.Context) error { return podsReady(ctx, m) })
	if err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
		return err //nolint:wrapcheck // it names the pod
	}
	return nil
}

var errPods = errors.New("the kubelet has not reported the pod as Ready")

// podsReady returns nil when every static pod of the manifest folder is Ready in its current revision.
func podsReady(ctx context.Context, m *controlplane.Machine) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	list, err := m.StaticPodFiles()
	if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	client, err := newClient(m)
	if err != nil {
		return err
	}
	for _, f := range list {
		if path.Dir(f.Path) != node.ManifestDir {
			continue
		}
		var wanted corev1.Pod
		if err := yaml.Unmarshal(f.Content, &wanted); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		name := wanted.Name + "-" + s.Name
		pod, err := client.CoreV1().Pods(wanted.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read pod %s/%s: %w", wanted.Namespace, name, err)
		}
		if pod.Labels[revision] != wanted.Labels[revision] || !slices.ContainsFunc(pod.Status.Conditions, isReady) {
			return fmt.Errorf("pod %s/%s of revision %s: %w", wanted.Namespace, name, wanted.Labels[revision], errPods)
		}
	}
	return nil
}

const revision = "revision"

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

func hasFiles(m *controlplane.Machine, list []files.File) (bool, error) {
	for _, f := range list {
		content, err := os.ReadFile(m.Path(f.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read a file of the kubelet: %w", err)
		}
		if !bytes.Equal(content, f.Content) {
			return false, nil
		}
	}
	return true, nil
}

var errKubelet = errors.New("the kubelet does not run")

func (k Kubelet) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.HealthURL, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errKubelet, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errKubelet, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return errors.Join(fmt.Errorf("%w: %s: %s", errKubelet, answer.Status, body), err)
	}
	return nil
}
