// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology/workload"
)

const (
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
	*Env
	node, address string
}

// openSite creates the application, loads the router's images, and has the ingress operator run the first of them, until
// the end of the spec.
func openSite(ctx context.Context, e *Env, hostArgs ...string) *site {
	GinkgoHelper()
	s := &site{Env: e, node: nodes(e)[0]}
	s.address = suite.Must(e.Kind.Address(ctx, s.node))
	s.loadRouters(ctx)
	DeferCleanup(s.close)
	for _, object := range s.application() {
		Expect(e.Cluster.Client().Create(ctx, object)).To(Succeed())
	}
	s.run(ctx, firstRouter, hostArgs...)
	return s
}

// close removes the application and restores the operator's own router.
func (s *site) close(ctx context.Context) {
	GinkgoHelper()
	for _, object := range s.application() {
		Expect(client.IgnoreNotFound(s.Cluster.Client().Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
	}
	Expect(s.RunHost(ctx, framework.Ingress)).To(Succeed())
	s.router(ctx, "of the operator's own image", func(p *corev1.Pod) bool { return p.Spec.Containers[0].ReadinessProbe == nil })
}

// run has the stand-in of the ingress operator use a router's image, and waits until no other runs.
func (s *site) run(ctx context.Context, image string, hostArgs ...string) {
	GinkgoHelper()
	Expect(s.RunHost(ctx, framework.Ingress, append([]string{"--router-image=" + image}, hostArgs...)...)).To(Succeed())
	s.router(ctx, "of image "+image, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image })
	s.rolledOut(ctx)
}

// visit sends requests until the end of the spec, and returns when they are answered.
func (s *site) visit(ctx context.Context, scheme string, port int) *traffic.Generator {
	GinkgoHelper()
	users := traffic.Start(ctx, traffic.Endpoint{URL: s.url(scheme, port) + "/", Body: greeting})
	DeferCleanup(func() { users.Stop() })
	answered(ctx, users)
	return users
}

// answered waits until requests are answered.
func answered(ctx context.Context, all ...*traffic.Generator) {
	GinkgoHelper()
	for _, users := range all {
		Expect(users.WaitAnswered(ctx, answeredFor, waitTimeout)).To(Succeed())
	}
}

// outageSince waits until requests are answered, and returns the longest outage since then.
func outageSince(ctx context.Context, users *traffic.Generator, begun time.Time) time.Duration {
	GinkgoHelper()
	answered(ctx, users)
	return traffic.Longest(traffic.Outages(users.Since(begun)), time.Now())
}

func (s *site) url(scheme string, port int) string {
	return scheme + "://" + net.JoinHostPort(s.address, strconv.Itoa(port))
}

func (s *site) loadRouters(ctx context.Context) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	// The published images of nodes contain no proxy.
	onNode(ctx, s.Kind, s.node, "sh", "-c", "test -x "+proxy+" || { apt-get update -q && apt-get install -y -q --no-install-recommends haproxy; }")
	layer, archive := filepath.Join(folder, "layer.tar"), filepath.Join(folder, "router.tar")
	Expect(s.Kind.Pack(ctx, layer, proxy, "/bin/bash", "/usr/bin/socat")).To(Succeed())
	certificate, key, err := cert.GenerateSelfSignedCertKey("apps.example.com", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for name, content := range map[string]string{
		"etc/router/haproxy.cfg": strings.NewReplacer("BACKEND", net.JoinHostPort(backendAddress, "80"), "ECHO", net.JoinHostPort(echoAddress, "80")).Replace(proxyConfig),
		"etc/router/app.cfg":     strings.ReplaceAll(appConfig, "GREETING", greeting),
		"etc/router/run":         routerScript,
		"etc/router/ready":       readyScript,
		"etc/router/tls.pem":     string(bytes.Join([][]byte{certificate, key}, nil)),
	} {
		files[name] = filepath.Join(folder, filepath.Base(name))
		Expect(os.WriteFile(files[name], []byte(content), 0o600)).To(Succeed())
	}
	router := images.Image{Name: firstRouter, Tar: layer, Files: files, Entrypoint: []string{"/bin/bash", "/etc/router/run"}}
	Expect(images.Write(archive, router)).To(Succeed())
	Expect(s.Kind.Load(ctx, archive)).To(Succeed())
	Expect(s.Kind.Tag(ctx, firstRouter, secondRouter)).To(Succeed())
}

// application answers every request with the greeting. It stays on the control plane, because only the router is
// measured. The last object is for routers that are not on their node's network, like the ingress operator's own.
func (s *site) application() []client.Object {
	app := corev1.PodSpec{
		NodeName: s.node, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: "app", Image: firstRouter, Command: []string{proxy, "-db", "-f", "/etc/router/app.cfg"}}},
	}
	return append(served(siteName, backendAddress, 80, app), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: siteName},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{routerLabel: scenario.DefaultIngressController},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: nodePort}},
		},
	})
}

// served returns a Deployment of one pod, and the Service at an address that sends requests to it.
func served(name, address string, port int32, pod corev1.PodSpec) []client.Object {
	labels := map[string]string{"app": name}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIP: address, Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		}},
	}
}

// routers returns the pods of the default router, also those that end.
func (s *site) routers(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.Cluster.Client().List(ctx, list, client.InNamespace(scenario.RouterNamespace),
		client.MatchingLabels{routerLabel: scenario.DefaultIngressController})
	return list.Items, err
}

// router waits until there is exactly one router that does not end, Ready, that satisfies want, and returns it.
func (s *site) router(ctx context.Context, what string, want func(*corev1.Pod) bool) (found *corev1.Pod) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pods, err := s.routers(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		g.Expect(pods).To(HaveLen(1))
		found = &pods[0]
		g.Expect(isReady(found)).To(BeTrue(), "%s on %s is Ready", found.Name, found.Spec.NodeName)
		g.Expect(want(found)).To(BeTrue(), "%s on %s", found.Name, found.Spec.NodeName)
	}).WithTimeout(settleTimeout).Should(Succeed(), "there is a router "+what)
	return found
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// roll rolls the router out.
func (s *site) roll(ctx context.Context, why string) {
	GinkgoHelper()
	body := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, why)
	Expect(s.Cluster.Client().Patch(ctx, routerDeployment(), client.RawPatch(types.MergePatchType, body))).To(Succeed())
	s.rolledOut(ctx)
}

// rolledOut waits until the router matches its Deployment and no older pod exists.
func (s *site) rolledOut(ctx context.Context) {
	GinkgoHelper()
	router := routerDeployment()
	Eventually(ctx, func(ctx context.Context) (*appsv1.Deployment, error) {
		return router, s.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(router), router)
	}).WithTimeout(settleTimeout).Should(Satisfy(workload.RolledOut), "the router is rolled out")
}

// routerDeployment has the name of the default router.
func routerDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: "router-" + scenario.DefaultIngressController}}
}

// defaultController returns the key of the default IngressController.
func defaultController() *operatorv1.IngressController {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController}}
}
