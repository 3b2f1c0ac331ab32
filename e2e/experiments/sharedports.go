// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/e2e/websockets"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/scenario"
)

// SharedHostPorts compares today's rollouts of a router with host ports with those of ingress.Host.WithSharedHostPorts
// (R-SNO-2).
var SharedHostPorts = kindtarget.Experiment{
	Name: sharedName, Scenario: "none-sno-day2-workers", Exclusive: true, OptIn: true, Run: sharedHostPorts,
	Description: "a router that shares its host ports with its successor is rolled out 20 times without a lost request",
}

const (
	sharedName = "shared-host-ports"
	sharedEach = 20
	// drained is grace and hard-stop-after of haproxy.cfg: only then may the old router close a WebSocket.
	drained = 3 * time.Second
	// answerLimit is after how long a request counts as lost. Processes of a busy machine can stop for more than a second.
	answerLimit = 10 * time.Second

	echoName  = "sno-echo"
	echoImage = "registry.invalid/sno/web-server:1"
	echoPort  = 8080

	sharedFlag = "--shared-host-ports"
	migrate    = "net.ipv4.tcp_migrate_req"
)

var (
	errLost = errors.New("requests were lost")
	errCut  = errors.New("the WebSocket was closed too early or could not be opened again at once")
)

// sharing is a way to roll out a router with host ports.
type sharing struct {
	name     string
	hostArgs []string
	shared   bool
	// migrates is the node's value of tcp_migrate_req.
	migrates bool
	// required means that no request may be lost.
	required bool
}

func sharings() []sharing {
	return []sharing{
		{name: "today's strategy", hostArgs: []string{"--stock"}},
		{name: "shared, " + migrate + "=0", hostArgs: []string{sharedFlag}, shared: true},
		{name: "shared, " + migrate + "=1", hostArgs: []string{sharedFlag}, shared: true, migrates: true, required: true},
	}
}

func sharedHostPorts(ctx context.Context, e *kindtarget.Env) (err error) {
	s, err := openSite(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.migrate(ctx, false), s.close(ctx)) }()
	if err := s.loadEcho(ctx); err != nil {
		return err
	}
	for _, object := range s.echo() {
		if err := e.Cluster.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
		}
		defer func() {
			background := client.PropagationPolicy(metav1.DeletePropagationBackground)
			err = errors.Join(err, client.IgnoreNotFound(e.Cluster.Client().Delete(context.WithoutCancel(ctx), object, background)))
		}()
	}
	var rows []bench.Row
	var errs []error
	for _, how := range sharings() {
		load, err := s.rollShared(ctx, how)
		if err != nil {
			return fmt.Errorf("%s: %w", how.name, err)
		}
		its, err := load.judge(how)
		rows, errs = append(rows, its...), append(errs, err)
	}
	return errors.Join(append(errs, record(e, sharedName, rows))...)
}

// load is what clients noticed during all rollouts.
type load struct {
	http, https []traffic.Sample
	// control are requests to a server on the same node without the router. They are slow if the machine is.
	control []traffic.Sample
	cuts    []traffic.Outage
	// deleted is when the old router of each rollout was deleted, to the second before.
	deleted []time.Time
	ended   time.Time
}

func (s *site) rollShared(ctx context.Context, how sharing) (*load, error) {
	if err := s.migrate(ctx, how.migrates); err != nil {
		return nil, err
	}
	if err := s.run(ctx, firstRouter, how.hostArgs...); err != nil {
		return nil, err
	}
	shares := func(p *corev1.Pod) bool { return (len(p.Spec.Containers[0].Ports) == 0) == how.shared }
	if _, err := s.router(ctx, "rolled out with "+how.name, shares); err != nil {
		return nil, err
	}
	plain := traffic.Start(ctx, traffic.Endpoint{URL: s.url("http", 80) + "/", Body: greeting, Within: answerLimit})
	secured := traffic.Start(ctx, traffic.Endpoint{URL: s.url("https", 443) + "/", Body: greeting, Within: answerLimit})
	defer plain.Stop()
	defer secured.Stop()
	socket, err := websockets.Open(ctx, s.url("ws", 80)+"/echo", answerLimit)
	if err != nil {
		return nil, err
	}
	defer socket.Stop()
	control := traffic.Start(ctx, traffic.Endpoint{URL: s.url("http", echoPort) + "/", Body: s.node + "\n", Within: answerLimit})
	defer control.Stop()
	restored := func() error {
		return errors.Join(plain.WaitAnswered(ctx, answeredFor, waitTimeout), secured.WaitAnswered(ctx, answeredFor, waitTimeout),
			control.WaitAnswered(ctx, answeredFor, waitTimeout), socket.WaitConnected(ctx, waitTimeout))
	}
	if _, err := s.replaced(ctx, ""); err != nil {
		return nil, err
	}
	if err := restored(); err != nil {
		return nil, err
	}
	result, begun := &load{}, time.Now()
	for i := range sharedEach {
		deleted, err := s.replace(ctx, fmt.Sprintf("%s %d", how.name, i))
		if err != nil {
			return nil, err
		}
		if err := restored(); err != nil {
			return nil, err
		}
		result.deleted = append(result.deleted, deleted)
	}
	result.ended, result.cuts = time.Now(), socket.Outages(begun)
	result.http, result.https, result.control = plain.Since(begun), secured.Since(begun), control.Since(begun)
	return result, nil
}

// judge returns the figures, and an error if they are required and not met.
func (l *load) judge(how sharing) ([]bench.Row, error) {
	lost := lostOf(l.http) + lostOf(l.https)
	longest := max(traffic.Longest(traffic.Outages(l.http), l.ended), traffic.Longest(traffic.Outages(l.https), l.ended))
	failed, away := 0, time.Duration(0)
	for _, cut := range l.cuts {
		failed, away = failed+cut.Failed, max(away, cut.Length(l.ended))
	}
	what := fmt.Sprintf("%d router rollouts on one node, host ports, %s", len(l.deleted), how.name)
	requests := bench.Row{
		What: what + ": requests", Bound: "-", Held: true,
		Compared: fmt.Sprintf("without the router: lost %d of %d, slowest answer %s", lostOf(l.control), len(l.control), seconds(slowest(l.control))),
		Measured: fmt.Sprintf("lost http %d of %d, https %d of %d; longest outage %s; slowest answer %s",
			lostOf(l.http), len(l.http), lostOf(l.https), len(l.https), seconds(longest), seconds(max(slowest(l.http), slowest(l.https)))),
	}
	connection := bench.Row{
		What: what + ": one WebSocket", Bound: "-", Held: true, Compared: "-",
		Measured: fmt.Sprintf("closed %d times, %d failed attempts, without it for at most %s", len(l.cuts), failed, seconds(away)),
	}
	if !how.required {
		return []bench.Row{requests, connection}, nil
	}
	var errs []error
	requests.Bound, requests.Held = "0 lost", lost == 0
	if !requests.Held {
		errs = append(errs, fmt.Errorf("%w: %s: %+v %+v", errLost, requests.Measured, traffic.Outages(l.http), traffic.Outages(l.https)))
	}
	connection.Bound, connection.Held = "closed once a drain, 0 failed", failed == 0 && drainedFirst(l.cuts, l.deleted)
	if !connection.Held {
		errs = append(errs, fmt.Errorf("%w: %+v, routers deleted at %v", errCut, l.cuts, l.deleted))
	}
	return []bench.Row{requests, connection}, errors.Join(errs...)
}

func lostOf(samples []traffic.Sample) int {
	lost := 0
	for _, s := range samples {
		if s.Problem != "" {
			lost++
		}
	}
	return lost
}

// slowest returns the longest time until a good answer.
func slowest(samples []traffic.Sample) time.Duration {
	longest := time.Duration(0)
	for _, s := range samples {
		if s.Problem == "" {
			longest = max(longest, s.Done.Sub(s.Sent))
		}
	}
	return longest
}

// drainedFirst reports whether each rollout closed the WebSocket once, after the old router had drained.
func drainedFirst(cuts []traffic.Outage, deleted []time.Time) bool {
	if len(cuts) != len(deleted) {
		return false
	}
	for i, cut := range cuts {
		if cut.From.Before(deleted[i].Add(drained)) {
			return false
		}
	}
	return true
}

// replace rolls the router out, and returns when its old pod was deleted. It waits until that pod no longer exists.
func (s *site) replace(ctx context.Context, why string) (time.Time, error) {
	old, err := s.router(ctx, "to replace", func(*corev1.Pod) bool { return true })
	if err != nil {
		return time.Time{}, err
	}
	if err := s.roll(ctx, why); err != nil {
		return time.Time{}, err
	}
	return s.replaced(ctx, old.UID)
}

// replaced waits until there is one router, which is not the old one, and returns when that was deleted.
func (s *site) replaced(ctx context.Context, old types.UID) (deleted time.Time, err error) {
	pods := &corev1.PodList{}
	err = wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.Cluster.Client().List(ctx, pods, client.InNamespace(scenario.RouterNamespace),
			client.MatchingLabels{routerLabel: scenario.DefaultIngressController})
		if err != nil {
			return false, nil //nolint:nilerr // tried again
		}
		for i := range pods.Items {
			// The kubelet deletes the pod again, without a grace period, when its containers have ended.
			grace := ptr.Deref(pods.Items[i].DeletionGracePeriodSeconds, 0)
			if pod := &pods.Items[i]; pod.UID == old && grace > 0 {
				deleted = pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
			}
		}
		return len(pods.Items) == 1 && pods.Items[0].UID != old, nil
	})
	if err != nil {
		return deleted, fmt.Errorf("wait until the old router has ended: %w: %d pods", err, len(pods.Items))
	}
	return deleted, nil
}

// migrate sets whether the node's kernel gives connections of a listener that closes to another one of the same port,
// even if the context has ended.
func (s *site) migrate(ctx context.Context, on bool) error {
	value := migrate + "=0"
	if on {
		value = migrate + "=1"
	}
	_, err := s.Kind.Exec(context.WithoutCancel(ctx), s.node, "sysctl", "--write", value)
	return err
}

func (s *site) loadEcho(ctx context.Context) error {
	binary, err := programs.Build(ctx, programs.WebServer, s.Progress)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sno-echo-")
	if err != nil {
		return fmt.Errorf("make the server of WebSockets: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	archive := filepath.Join(folder, "echo.tar")
	name := programs.WebServer.Name
	if err := images.Write(archive, images.Image{Name: echoImage, Files: map[string]string{name: binary}, Entrypoint: []string{"/" + name}}); err != nil {
		return err
	}
	return s.Kind.Load(ctx, archive)
}

// echo is the server of WebSockets behind the router.
func (s *site) echo() []client.Object {
	labels := map[string]string{"app": echoName}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: echoName, Labels: labels}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				// On the host network it also answers the requests of the control.
				NodeName: s.node, HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](0),
				Containers: []corev1.Container{{Name: "echo", Image: echoImage}},
			}},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIP: echoAddress, Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(echoPort)}},
		}},
	}
}
