package stable

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared serves no MachineConfigPool.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.ClusterVersions, patchtest.ClusterOperators}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// put makes the object and then gives it the status that change writes.
func put[T client.Object](t *testing.T, c client.Client, object T, change func(T)) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
			t.Error(err)
		}
	})
	change(object)
	if err := c.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// install makes the objects of atRest but the pool and the request, and a worker that is not ready.
func install(t *testing.T, admin client.Client) *corev1.Node {
	t.Helper()
	s := atRest()
	for _, name := range []string{"openshift-console", "openshift-kube-apiserver"} {
		if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := func(o metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	}
	put(t, admin, &configv1.ClusterVersion{
		ObjectMeta: fresh(s.ClusterVersions[0].ObjectMeta), Spec: configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
	}, func(v *configv1.ClusterVersion) {
		v.Status = s.ClusterVersions[0].Status
		v.Status.ObservedGeneration = v.Generation
		v.Status.Desired.Image = "example.com/release"
		v.Status.VersionHash = "hash"
		v.Status.History[0].Image, v.Status.History[0].StartedTime = "example.com/release", metav1.NewTime(installed)
		v.Status.History[0].CompletionTime = &later
	})
	put(t, admin, &configv1.ClusterOperator{ObjectMeta: fresh(s.ClusterOperators[0].ObjectMeta)}, func(o *configv1.ClusterOperator) {
		o.Status = s.ClusterOperators[0].Status
	})
	labels := map[string]string{"app": "console"}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "console", Image: "example.com/console"}}},
	}
	put(t, admin, &appsv1.Deployment{
		ObjectMeta: fresh(s.Deployments[0].ObjectMeta),
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod},
	}, func(d *appsv1.Deployment) {
		d.Status = s.Deployments[0].Status
		d.Status.ObservedGeneration, d.Status.ReadyReplicas = d.Generation, 1
	})
	server := &corev1.Pod{ObjectMeta: fresh(s.APIServers[0].ObjectMeta), Spec: pod.Spec}
	server.Labels = map[string]string{"app": "openshift-kube-apiserver"}
	server.Spec.NodeName = "sno"
	put(t, admin, server, func(p *corev1.Pod) { p.Status = s.APIServers[0].Status })
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace, Name: "installer-2-sno"}, Spec: pod.Spec}
	put(t, admin, other, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	put(t, admin, &corev1.Node{ObjectMeta: fresh(s.Nodes[0].ObjectMeta)}, func(n *corev1.Node) { n.Status = s.Nodes[0].Status })
	return put(t, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"}}
	})
}

// twoAPage reads two objects at a time.
type twoAPage struct{ client.Reader }

func (r twoAPage) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(options, client.Limit(2))...)
}

// TestOnRealServer waits for a cluster whose worker becomes ready, and whose certificate is approved, while it is looked at.
func TestOnRealServer(t *testing.T) {
	server := shared.Server(t)
	admin := server.Admin(t)
	worker := install(t, admin)
	request := put(t, admin, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-worker"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Request: requestPEM(t),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, func(*certificatesv1.CertificateSigningRequest) {})
	gather := func(ctx context.Context) State { return Gather(ctx, twoAPage{admin}) }

	// In the beginning it gives up.
	var said bytes.Buffer
	o := Options{Quiet: 0, Timeout: 300 * time.Millisecond, Every: 100 * time.Millisecond, Remind: time.Minute, Progress: &said}
	out, err := Wait(t.Context(), gather, o)
	if !errors.Is(err, ErrNotStable) {
		t.Fatalf("got %v, want ErrNotStable", err)
	}
	var moving []string
	for _, m := range out.Moving {
		moving = append(moving, m.String())
	}
	want := []string{
		"Node worker: Ready=False (KubeletNotReady)",
		"CertificateSigningRequest csr-worker: nobody has approved it; on a single node that is left to a person or an outside tool",
	}
	if diff := cmp.Diff(want, moving); diff != "" {
		t.Errorf("moving (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{kindPool}, out.NotServed); diff != "" {
		t.Errorf("not served (-want +got):\n%s", diff)
	}

	// Each look is followed by what a person, a kubelet or a controller would do next.
	steps := []func(){
		func() { // a person approves
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Person"},
			}
			if err := admin.SubResource("approval").Update(t.Context(), request); err != nil {
				t.Error(err)
			}
		},
		func() { // the signer signs
			request.Status.Certificate = certificatePEM(t)
			if err := admin.Status().Update(t.Context(), request); err != nil {
				t.Error(err)
			}
		},
		func() { // the kubelet is ready
			worker.Status.Conditions[0].Status = corev1.ConditionTrue
			if err := admin.Status().Update(t.Context(), worker); err != nil {
				t.Error(err)
			}
		},
		func() {},
		func() { // it restarts when all seems well
			worker.Status.NodeInfo.BootID = "b"
			if err := admin.Status().Update(t.Context(), worker); err != nil {
				t.Error(err)
			}
		},
	}
	said.Reset()
	o.Quiet, o.Timeout = 500*time.Millisecond, time.Minute
	out, err = Wait(t.Context(), func(ctx context.Context) State {
		s := gather(ctx)
		if len(steps) > 0 {
			steps[0]()
			steps = steps[1:]
		}
		return s
	}, o)
	if err != nil || !out.Stable {
		t.Fatalf("stable %t: %v\n%s", out.Stable, err, &said)
	}
	for _, line := range []string{"it is approved and not signed yet", "Node worker: has changed", "Quiet for 0s"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("the progress does not say %q:\n%s", line, &said)
		}
	}
}

func TestForbiddenIsNotKnown(t *testing.T) {
	server := shared.Server(t)
	s := Gather(t.Context(), server.Client(t, "nobody-in-particular"))
	var kinds []string
	for _, u := range s.Unknown {
		kinds = append(kinds, u.Kind)
	}
	want := []string{
		kindClusterVersion, kindClusterOperator, kindNode, kindRequest, kindDeployment, kindDaemonSet, kindStatefulSet, kindPod,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("not known (-want +got):\n%s", diff)
	}
	if len(s.Unknown) > 2 && !strings.Contains(s.Unknown[2].Error, `cannot list resource "nodes"`) {
		t.Errorf("%q does not name verb and resource", s.Unknown[2].Error)
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := shared.Server(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := Gather(ctx, server.Admin(t)); len(s.Unknown) != 8 {
		t.Errorf("got %+v, want that nothing which is served is known", s)
	}
}
