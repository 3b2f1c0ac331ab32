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
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// accessOf returns the kubeconfig with which the kubelet asks for a certificate, and the bundle by which it knows the API server.
func accessOf(m *controlplane.Machine) ([]files.File, error) {
	content, err := os.ReadFile(m.Path(path.Join(m.Rendered, controlplane.KubeletKubeconfig)))
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's kubeconfig: %w", err)
	}
	return kubelet.Access(content) //nolint:wrapcheck // it says of what
}

// Kubelet is how the kubelet of the machine is found.
type Kubelet struct {
	// Health is the URL where it says whether it runs.
	Health string
	// Patience is how long it may take to start static pods anew.
	Patience time.Duration
}

// learn has the kubelet start anew if what it reads then has changed: the bundle by which it knows the API server, and the kubeconfig with which it asks for
// a certificate. Pods keep running meanwhile.
//
// First the kubelet that runs has to start the static pods anew that have changed. One that finds other static pods than those that run starts the new ones
// while the old ones have their ports, and does not end those before it has seen the API server.
func (k Kubelet) learn(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	access, err := accessOf(m)
	if err != nil {
		return err
	}
	same, err := laid(m, access)
	if err != nil {
		return err
	}
	if !same {
		if err := k.settled(ctx, m, p); err != nil {
			return err
		}
		// Between the two it would go on with what it has read before, and nobody would know.
		if err := m.Systemctl(ctx, "stop", kubelet.Unit); err != nil {
			return err
		}
		if err := m.Lay(access...); err != nil {
			return err //nolint:wrapcheck // it names the file
		}
	}
	// An earlier run may have been cut off.
	if err := m.Systemctl(ctx, "start", kubelet.Unit); err != nil {
		return err
	}
	return p.Until(ctx, m.Interval, "the kubelet", k.healthy) //nolint:wrapcheck // it says what it waits for
}

// settled waits until the kubelet reports the static pods that are laid. It does not wait for ever: where its certificate has ended, or the one by which
// it knows the API server, it can report nothing before it starts anew.
func (k Kubelet) settled(ctx context.Context, m *controlplane.Machine, p *phase.Progress) error {
	waiting, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	err := p.Until(waiting, m.Interval, "static pods", func(ctx context.Context) error { return reported(ctx, m) })
	if err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
		return err //nolint:wrapcheck // it says what it waits for
	}
	return nil
}

var errPods = errors.New("the kubelet has not reported it")

// reported returns nil when every static pod that is laid is Ready.
func reported(ctx context.Context, m *controlplane.Machine) error {
	s, err := m.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	list, err := m.Files()
	if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	config, err := m.Client()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
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

// revision is the label with the revision of a static pod.
const revision = "revision"

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// laid reports whether the machine has the files.
func laid(m *controlplane.Machine, list []files.File) (bool, error) {
	for _, f := range list {
		content, err := os.ReadFile(m.Path(f.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read what the kubelet reads: %w", err)
		}
		if !bytes.Equal(content, f.Content) {
			return false, nil
		}
	}
	return true, nil
}

var errKubelet = errors.New("the kubelet does not run")

func (k Kubelet) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.Health, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errKubelet, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errKubelet, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return errors.Join(fmt.Errorf("%w: %s: %s", errKubelet, answer.Status, said), err)
	}
	return nil
}
