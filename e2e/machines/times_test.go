// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const pause = "registry.k8s.io/pause:3.10"

// bootTimes are the times since a machine was turned on, and its working set in bytes when everything runs.
type bootTimes struct {
	ready, pod time.Duration
	memory     int
}

// waitForBoot returns when the only node is Ready and a pod runs that is created as soon as the API server accepts it.
func waitForBoot(ctx context.Context, began time.Time, config *rest.Config) bootTimes {
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = 5*time.Second, rest.NoWarnings{}
	kube := clientset(config)
	pods := kube.CoreV1().Pods(metav1.NamespaceDefault)
	first := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pause}}},
	}
	Eventually(ctx, func(ctx context.Context) error {
		_, err := pods.Create(ctx, first, metav1.CreateOptions{})
		return err
	}).WithPolling(measureInterval).Should(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	var times bootTimes
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		if times.ready == 0 {
			nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			if len(nodes.Items) > 0 && slices.ContainsFunc(nodes.Items[0].Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				times.ready = time.Since(began)
			}
		}
		if times.pod == 0 {
			pod, err := pods.Get(ctx, first.Name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
			times.pod = time.Since(began)
		}
		g.Expect(times.ready).NotTo(BeZero(), "the node is not Ready")
	}).WithPolling(measureInterval).Should(Succeed())
	return times
}

// outages measures how long an API server does not respond, from outside.
type outages struct {
	mu      sync.Mutex
	address string
	last    time.Time
	longest time.Duration
}

// at begins to measure the API server of an address.
func (o *outages) at(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.address = address
}

func (o *outages) watch(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		o.mu.Lock()
		address := o.address
		o.mu.Unlock()
		if address != "" && isReady(ctx, address) {
			o.recordAnswer()
		}
	}, measureInterval)
}

// anonymous needs no credentials. It has a new connection for each request, because another one may be to an API server
// that stops.
var anonymous = &http.Client{Timeout: time.Second, Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is sent
	DisableKeepAlives: true,
}}

// isReady reports whether /readyz of an API server is ok.
func isReady(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(address, "6443")+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := anonymous.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
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
