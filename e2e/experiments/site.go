// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	poll = 100 * time.Millisecond
	// waitTimeout is for pods to start on a busy machine.
	waitTimeout = 2 * time.Minute
	// answeredFor is how long requests must be answered before traffic counts as restored.
	answeredFor = time.Second

	siteName    = "sno-site"
	routerLabel = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	// backendAddress is in kubeadm's range of Services. The proxy's configuration precedes the Service.
	backendAddress = "10.96.0.80"
	echoAddress    = "10.96.0.81"
	greeting       = "hello from behind the router"
	// nodePort is for routers that are not on their node's network.
	nodePort = 30080

	firstRouter, secondRouter = "registry.invalid/sno/router:1", "registry.invalid/sno/router:2"
	proxy                     = "/usr/sbin/haproxy"
)

var (
	//go:embed haproxy.cfg
	proxyConfig string
	//go:embed app.cfg
	appConfig string
	//go:embed router.sh
	routerScript string
	//go:embed ready.sh
	readyScript string
)

// site is an application behind the default router, whose name resolves to the address of the first control-plane node,
// as on a cluster without load balancers.
type site struct {
	*kindtarget.Env
	node, address string
}

// openSite creates the application, loads the router's images, and has the ingress operator run the first of them.
func openSite(ctx context.Context, e *kindtarget.Env, hostArgs ...string) (*site, error) {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return nil, err
	}
	s := &site{Env: e, node: nodes[0]}
	if s.address, err = e.Kind.Address(ctx, s.node); err != nil {
		return nil, err
	}
	if err := s.loadRouters(ctx); err != nil {
		return nil, err
	}
	for _, object := range s.application() {
		if err := e.Cluster.Client().Create(ctx, object); err != nil {
			return nil, fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := s.run(ctx, firstRouter, hostArgs...); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// close removes the application and restores the router's first image, even if the context has ended.
func (s *site) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
	defer cancel()
	err := s.RunHost(ctx, framework.Ingress)
	if err == nil {
		_, err = s.router(ctx, "of the first image", func(p *corev1.Pod) bool { return p.Spec.Containers[0].ReadinessProbe == nil })
	}
	for _, object := range s.application() {
		err = errors.Join(err, client.IgnoreNotFound(s.Cluster.Client().Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	return err
}

// run has the stand-in of the ingress operator use a router's image, and waits until no other runs.
func (s *site) run(ctx context.Context, image string, hostArgs ...string) error {
	if err := s.RunHost(ctx, framework.Ingress, append([]string{"--router-image=" + image}, hostArgs...)...); err != nil {
		return err
	}
	if _, err := s.router(ctx, "of image "+image, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image }); err != nil {
		return err
	}
	return s.rolledOut(ctx)
}

func (s *site) visit(ctx context.Context, scheme string, port int) *traffic.Generator {
	return traffic.Start(ctx, traffic.Endpoint{URL: s.url(scheme, port) + "/", Body: greeting})
}

func (s *site) url(scheme string, port int) string {
	return scheme + "://" + net.JoinHostPort(s.address, strconv.Itoa(port))
}

func (s *site) loadRouters(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "sno-router-")
	if err != nil {
		return fmt.Errorf("make the router: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	// The published images of nodes contain no proxy.
	const install = "test -x " + proxy + " || { apt-get update -q && apt-get install -y -q --no-install-recommends haproxy; }"
	if _, err := s.Kind.Exec(ctx, s.node, "sh", "-c", install); err != nil {
		return err
	}
	layer := filepath.Join(folder, "layer.tar")
	if err := s.Kind.Pack(ctx, layer, proxy, "/bin/bash", "/usr/bin/socat"); err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("apps.example.com", nil, nil)
	if err != nil {
		return fmt.Errorf("make the router's certificate: %w", err)
	}
	files := map[string]string{}
	for name, content := range map[string]string{
		"etc/router/haproxy.cfg": strings.NewReplacer("BACKEND", net.JoinHostPort(backendAddress, "80"), "ECHO", net.JoinHostPort(echoAddress, "80")).Replace(proxyConfig),
		"etc/router/app.cfg":     strings.ReplaceAll(appConfig, "GREETING", greeting),
		"etc/router/run":         routerScript,
		"etc/router/ready":       readyScript,
		"etc/router/tls.pem":     string(bytes.Join([][]byte{certificate, key}, nil)),
	} {
		files[name] = filepath.Join(folder, filepath.Base(name))
		if err := os.WriteFile(files[name], []byte(content), 0o600); err != nil {
			return fmt.Errorf("make the router: %w", err)
		}
	}
	router := images.Image{Name: firstRouter, Tar: layer, Files: files, Entrypoint: []string{"/bin/bash", "/etc/router/run"}}
	archive := filepath.Join(folder, "router.tar")
	if err := images.Write(archive, router); err != nil {
		return err
	}
	if err := s.Kind.Load(ctx, archive); err != nil {
		return err
	}
	return s.Kind.Tag(ctx, firstRouter, secondRouter)
}

// application answers every request with the greeting. It stays on the control plane, because only the router is
// measured.
func (s *site) application() []client.Object {
	labels := map[string]string{"app": siteName}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: siteName, Labels: labels}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeName:                      s.node,
				TerminationGracePeriodSeconds: ptr.To[int64](0),
				Containers:                    []corev1.Container{{Name: "app", Image: firstRouter, Command: []string{proxy, "-db", "-f", "/etc/router/app.cfg"}}},
			}},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIP: backendAddress, Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
		}},
		s.nodePortService(),
	}
}

// nodePortService is for routers that are not on their node's network, like the ingress operator's own.
func (s *site) nodePortService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: siteName},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{routerLabel: scenario.DefaultIngressController},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: nodePort}},
		},
	}
}

func (s *site) routerPods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.Cluster.Client().List(ctx, list, client.InNamespace(scenario.RouterNamespace),
		client.MatchingLabels{routerLabel: scenario.DefaultIngressController})
	if err != nil {
		return nil, fmt.Errorf("list the routers: %w", err)
	}
	var live []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			live = append(live, list.Items[i])
		}
	}
	return live, nil
}

// router waits until there is exactly one router, Ready, that satisfies want, and returns it.
func (s *site) router(ctx context.Context, what string, want func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var found *corev1.Pod
	last := "none"
	err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := s.routerPods(ctx)
		switch {
		case err != nil:
			last = err.Error()
		case len(pods) != 1:
			last = fmt.Sprintf("%d pods", len(pods))
		case !isReady(&pods[0]):
			last = pods[0].Name + " is not Ready"
		case !want(&pods[0]):
			last = fmt.Sprintf("%s on %s is another one", pods[0].Name, pods[0].Spec.NodeName)
		default:
			found = &pods[0]
		}
		return found != nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for a router %s: %w: %s", what, err, last)
	}
	return found, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
