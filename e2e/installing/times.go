// SPDX-License-Identifier: Apache-2.0

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

const measureInterval = 100 * time.Millisecond

// BootTimes are the times since a machine was turned on.
type BootTimes struct{ Ready, Pod time.Duration }

// waitForBoot returns when the only node is Ready and a pod runs that is created as soon as the API server accepts it.
func waitForBoot(ctx context.Context, began time.Time, config *rest.Config) (BootTimes, error) {
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
	err = wait.PollUntilContextTimeout(ctx, measureInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
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

// outages measures how long an API server does not respond, from outside.
type outages struct {
	mu      sync.Mutex
	address string
	last    time.Time
	longest time.Duration
}

func (o *outages) at(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.address = address
}

func (o *outages) watch(ctx context.Context) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is sent
		DisableKeepAlives: true,                                  // a connection may be to an API server that stops
	}}
	ticker := time.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		o.probe(ctx, client)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (o *outages) probe(ctx context.Context, client *http.Client) {
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
	response, err := client.Do(request)
	if err != nil {
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return
	}
	o.recordAnswer()
}

func (o *outages) recordAnswer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.last.IsZero() {
		o.longest = max(o.longest, now.Sub(o.last))
	}
	o.last = now
}

// reset returns the longest time between two answers, and starts again.
func (o *outages) reset() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := o.longest
	o.last, o.longest = time.Time{}, 0
	return longest
}
