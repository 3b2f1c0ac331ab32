package installing

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// often is how often what is timed is looked at.
const often = 100 * time.Millisecond

// BootTimes is what a machine has reached since it was turned on.
type BootTimes struct{ Ready, Pod time.Duration }

// arrive returns when the only node is Ready, and a first pod that a person makes as soon as the API server takes it.
func arrive(ctx context.Context, began time.Time, config *rest.Config) (BootTimes, error) {
	var a BootTimes
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = 5*time.Second, rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return a, fmt.Errorf("connect to the API server: %w", err)
	}
	pods := kube.CoreV1().Pods(metav1.NamespaceDefault)
	first := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pause}}},
	}
	made := false
	var last error
	err = wait.PollUntilContextTimeout(ctx, often, patience, true, func(ctx context.Context) (bool, error) {
		if !made {
			_, last = pods.Create(ctx, first, metav1.CreateOptions{})
			made = last == nil || apierrors.IsAlreadyExists(last)
			return false, nil
		}
		if a.Ready == 0 {
			nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if last = err; err == nil && len(nodes.Items) > 0 && ready(nodes.Items[0].Status.Conditions) {
				a.Ready = time.Since(began)
			}
		}
		pod, err := pods.Get(ctx, first.Name, metav1.GetOptions{})
		if last = err; err != nil || pod.Status.Phase != corev1.PodRunning {
			return false, nil
		}
		a.Pod = time.Since(began)
		return a.Ready > 0, nil
	})
	if err != nil {
		return a, fmt.Errorf("wait for the node and a first pod: %w: %w", err, last)
	}
	return a, nil
}

func ready(conditions []corev1.NodeCondition) bool {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// outages is how long an API server did not answer at a time, as anybody sees it who asks from outside.
type outages struct {
	mu      sync.Mutex
	address string
	last    time.Time
	longest time.Duration
}

// at has it ask another machine from now on.
func (o *outages) at(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.address = address
}

// watch asks until the context ends.
func (o *outages) watch(ctx context.Context) {
	asker := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is said
		DisableKeepAlives: true,                                  // a connection may be to an API server that ends
	}}
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		o.ask(ctx, asker)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (o *outages) ask(ctx context.Context, asker *http.Client) {
	o.mu.Lock()
	address := o.address
	o.mu.Unlock()
	if address == "" {
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(address, "6443")+"/readyz", nil)
	if err != nil {
		return
	}
	answer, err := asker.Do(request)
	if err != nil {
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return
	}
	o.answered()
}

func (o *outages) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.last.IsZero() {
		o.longest = max(o.longest, now.Sub(o.last))
	}
	o.last = now
}

// reset returns the longest time without an answer between two answers, and begins anew.
func (o *outages) reset() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := o.longest
	o.last, o.longest = time.Time{}, 0
	return longest
}
