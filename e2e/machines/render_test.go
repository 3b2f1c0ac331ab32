// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// A control plane starts on a machine without a config by two methods, whose times are compared. All in one is compared
// with kubeadm too.
var _ = Describe("A control plane", Ordered, Label("render"), func() {
	var kubeadmChecks []string
	var kubeadm start
	It("starts by kubeadm init, and its Secrets are detected in plain text", Label("kubeadm"), func(ctx SpecContext) {
		m := &machine{way: "kubeadm"}
		m.setUp(ctx)
		c := m.kubeadm()
		var times bootTimes
		kubeadm.took = m.startControlPlane(ctx, c, func(ctx context.Context, began time.Time) { times = waitForBoot(ctx, began, m.kubeadmAdmin(ctx)) })
		times.memory = m.memory(ctx)
		booted.kubeadm = times
		kubeadmChecks = m.verify(ctx, c)
		var plain []string
		kubeadm.secrets, plain = m.secrets(ctx, c)
		Expect(plain).To(HaveLen(kubeadm.secrets), "Secrets in plain text were not detected: %v", plain)
	}, SpecTimeout(stepTimeout))

	It("starts from the static pods and manifests of sno-render, whose Secrets are encrypted by their first write", func(ctx SpecContext) {
		r := &rendered{machine: &machine{way: "render"}}
		r.setUp(ctx)
		c := r.controlPlane()
		ours := start{took: r.startControlPlane(ctx, c)}
		r.join(ctx)
		Expect(r.verify(ctx, c)).To(ContainElements(kubeadmChecks), "the API server has all checks of readiness of kubeadm's")
		var plain []string
		ours.secrets, plain = r.secrets(ctx, c)
		Expect(plain).To(BeEmpty())
		suite.Record(suite.RealKubelets, renderedRows(ours, kubeadm, r.cost)...)
	}, SpecTimeout(stepTimeout))
})

// controlPlane is a method that starts a control plane.
type controlPlane struct {
	prepare func(context.Context)
	// begin is a command on the machine.
	begin string
	// kubectl is the command as administrator, and staticPods the selector of the mirror pods.
	kubectl, staticPods string
	// etcdSecrets is the prefix of Secrets in etcd, and etcdFiles are the CA, certificate and key of a client of etcd, as
	// patterns that match one file each.
	etcdSecrets, etcdFiles string
}

const (
	podNetwork, podsOfNode = "10.128.0.0/14", "10.128.0.0/23"

	kubeletConfig = kubeletDropIn + `staticPodPath: /etc/kubernetes/manifests
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: systemd
rotateCertificates: true
`
)

// startControlPlane starts a control plane on a new machine. It returns the time from the first container to the first
// answer of /readyz that is ok. The functions run in parallel; they get the time when the machine was turned on.
func (m *machine) startControlPlane(ctx context.Context, c controlPlane, parallel ...func(context.Context, time.Time)) time.Duration {
	m.create(ctx, "")
	began := time.Now()
	Expect(m.Start(ctx)).To(Succeed())
	put(ctx, m.Machine, networkConfigFile, 0o644, fmt.Appendf(nil, networkConfig, podsOfNode))
	c.prepare(ctx)
	var ready time.Time
	functions := []func(context.Context){
		func(ctx context.Context) { m.run(ctx, c.begin) },
		func(ctx context.Context) {
			Expect(wait.PollUntilContextTimeout(ctx, measureInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
				return isReady(ctx, m.Address()), nil
			})).To(Succeed(), "the API server is ready")
			ready = time.Now()
		},
	}
	for _, do := range parallel {
		functions = append(functions, func(ctx context.Context) { do(ctx, began) })
	}
	inParallel(ctx, functions...)
	const created = `crictl pods --output json | grep --only-matching '"createdAt": *"[0-9]*"' | tr --complement --delete '0-9\n' | sort --numeric-sort | head --lines=1`
	first := time.Unix(0, int64(m.number(ctx, created)))
	By("the API server is ready " + seconds(ready.Sub(first)) + " after the first container")
	return ready.Sub(first)
}

// verify checks that the control plane serves a node, and returns the checks of /readyz, all of which are ok.
func (m *machine) verify(ctx context.Context, c controlPlane) []string {
	m.wait(ctx, check{"the node is Ready", c.kubectl + "wait --for=condition=Ready --timeout=5s node/" + m.Name()},
		check{"a Deployment's pod runs", c.kubectl + "create deployment pause --image=" + pause + " 2>/dev/null; " + c.kubectl + "rollout status deployment/pause --timeout=5s"},
		staticPodsReady(c.kubectl, c.staticPods))
	// It fails if a check does. The other lines do not begin so.
	return strings.Split(m.run(ctx, c.kubectl+"get --raw='/readyz?verbose' | grep '^\\[+]'"), "\n")
}

// kubeadm is `kubeadm init` without its add-ons, which a control plane does not need to be ready.
func (m *machine) kubeadm() controlPlane {
	return controlPlane{
		prepare: func(ctx context.Context) {
			put(ctx, m.Machine, "etc/kubernetes/kubeadm.yaml", 0o600, append(fmt.Appendf(nil, kubeadmConfig, m.Address(), m.Name(), version, podNetwork), kubeletConfig...))
		},
		begin:       "kubeadm init --config=/etc/kubernetes/kubeadm.yaml --ignore-preflight-errors=all",
		kubectl:     "kubectl --kubeconfig=/etc/kubernetes/admin.conf ",
		staticPods:  "tier=control-plane",
		etcdSecrets: "/registry/secrets/",
		etcdFiles:   "/etc/kubernetes/pki/etcd/ca.crt /etc/kubernetes/pki/apiserver-etcd-client.crt /etc/kubernetes/pki/apiserver-etcd-client.key",
	}
}

const kubeadmConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %s}
nodeRegistration: {name: %s, taints: []}
skipPhases: [addon]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
networking: {podSubnet: %s, serviceSubnet: 172.30.0.0/16}
---
`

// kubeadmAdmin waits until kubeadm has written the administrator's credentials.
func (m *machine) kubeadmAdmin(ctx context.Context) (admin *rest.Config) {
	Eventually(ctx, func(ctx context.Context) error {
		text, err := m.Exec(ctx, "cat", "/etc/kubernetes/admin.conf")
		if err == nil {
			admin, err = clientcmd.RESTConfigFromKubeConfig([]byte(text))
		}
		return err
	}).WithPolling(measureInterval).Should(Succeed())
	return admin
}

// rendered is a machine with the output of sno-render.
type rendered struct {
	*machine
	cost rendering
}

// renderInput is the input folder of sno-render, in one file.
//
//go:embed testdata/cluster.yaml
var renderInput string

func (r *rendered) controlPlane() controlPlane {
	const pod = "/etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/"
	return controlPlane{
		prepare: r.prepare, begin: "systemctl start kubelet.service", kubectl: "kubectl --kubeconfig=/opt/check/rendered/auth/kubeconfig-localhost ", staticPods: "revision",
		etcdSecrets: "/kubernetes.io/secrets/",
		etcdFiles:   pod + "configmaps/etcd-serving-ca/ca-bundle.crt " + pod + "secrets/etcd-client/tls.crt " + pod + "secrets/etcd-client/tls.key",
	}
}

// prepare renders for this machine, and writes to its disk what an installer does.
func (r *rendered) prepare(ctx context.Context) {
	r.write(map[string]string{"input/cluster.yaml": strings.NewReplacer("NODE", r.Name(), "ADDRESS", r.Address()).Replace(renderInput)})
	r.render(ctx, strings.Fields(r.run(ctx, "kubeadm config images list --kubernetes-version="+version)))
	files := folder(r.path("output/files"), "")
	files = append(files, folder(r.path("output"), "opt/check/rendered/")...)
	files = append(files,
		nodemachine.File{Path: "etc/kubernetes/bootstrap-kubelet.conf", Mode: 0o600, Content: r.read("output/auth/kubeconfig-kubelet")},
		// The CA of the API server's clients is also that of the kubelet's.
		nodemachine.File{Path: "etc/kubernetes/kubelet-ca.crt", Mode: 0o644,
			Content: r.read("output/files/etc/kubernetes/static-pod-resources/kube-apiserver-certs/configmaps/client-ca/ca-bundle.crt")},
		nodemachine.File{Path: "var/lib/kubelet/config.yaml", Mode: 0o600, Content: []byte(renderedKubeletConfig)})
	Expect(r.Put(ctx, files...)).To(Succeed())
	// An installer provides this name of the cluster's DNS.
	r.run(ctx, "echo "+r.Address()+" api-int.machine.example.com >>/etc/hosts")
}

func folder(local, on string) []nodemachine.File {
	files := suite.Must(nodemachine.Folder(local))
	for i := range files {
		files[i].Path = on + files[i].Path
	}
	return files
}

const renderedKubeletConfig = kubeletConfig + `clusterDNS: [172.30.0.10]
clusterDomain: cluster.local
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/kubelet-ca.crt}}
authorization: {mode: Webhook}
`

// render runs sno-render, and measures its cost.
func (r *rendered) render(ctx context.Context, images []string) {
	program := suite.Must(programs.Build(ctx, programs.Render, GinkgoWriter))
	arguments := []string{"--input", r.path("input"), "--output", r.path("output"), "--profile", "kubernetes", "--kubernetes-version", kubernetesVersion()}
	for _, image := range images {
		if name := path.Base(strings.Split(image, ":")[0]); slices.Contains([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}, name) {
			arguments = append(arguments, "--image", name+"="+image)
		}
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	began := time.Now()
	Expect(command.Start()).To(Succeed())
	running, ended := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- peakMemory(running, command.Process.Pid) }()
	err := command.Wait()
	took := time.Since(began)
	ended()
	Expect(err).NotTo(HaveOccurred())
	r.cost = rendering{took, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), <-peak}
	Expect(r.cost.memory).NotTo(BeZero())
	By("sno-render took " + r.cost.String())
}

// peakMemory returns the maximum memory of a process until the context ends. The maximum in the resource usage of an ended
// process is no less than its parent's, from before the program was executed.
func peakMemory(ctx context.Context, pid int) (peak int64) {
	wait.UntilWithContext(ctx, func(context.Context) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // none at the end
		if _, rest, found := strings.Cut(string(status), "VmHWM:"); found {
			kibibytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if value, err := strconv.ParseInt(kibibytes, 10, 64); err == nil {
				peak = max(peak, value<<10)
			}
		}
	}, 10*time.Millisecond)
	return peak
}

// join creates the objects as docs/render.md describes it, with which the kubelet can request its certificate, and has
// the outside tool approve it.
func (r *rendered) join(ctx context.Context) {
	r.putDefinitions(ctx)
	kubectl := r.controlPlane().kubectl
	const onlyNew = " 2>&1 >/dev/null | grep -v -e '(AlreadyExists)' -e ^Warning: >&2"
	r.wait(ctx, check{"the CustomResourceDefinitions are established", "! " + kubectl + "create -f /opt/check/definitions/" + onlyNew + " && " +
		kubectl + "wait --for=condition=Established --timeout=5s customresourcedefinitions --all"},
		check{"the objects of sno-render are created", "! " + kubectl + "create -f /opt/check/rendered/manifests/" + onlyNew},
		check{"their status is written", kubectl + "apply --server-side --subresource=status --field-manager=sno-render -f /opt/check/rendered/manifests/status/"})

	approve := suite.Must(programs.Build(ctx, programs.Approve, GinkgoWriter))
	Expect(clientcmd.WriteToFile(*r.kubeconfig("output/auth/kubeconfig-localhost", r.Machine), r.path("approve.kubeconfig"))).To(Succeed())
	tool := joining.ToolAt(approve, r.path("approve.kubeconfig"), r.folder)
	tool.WriteInventory(joining.InventoryEntry{Name: r.Name(), Addresses: []string{r.Address()}, Window: joining.OpenWindow()})
	Eventually(ctx, func(ctx context.Context) (map[string]joining.RequestResult, error) {
		_, results, err := tool.RunOnce(ctx)
		return results, err
	}).Should(ContainElement(HaveField("Outcome", "approved")), "the outside tool approves the node's certificate")
}

// putDefinitions writes the CustomResourceDefinitions of the groups config.openshift.io and operator.openshift.io, which
// a release payload contains, for a cluster with its own control plane and without preview features.
func (r *rendered) putDefinitions(ctx context.Context) {
	var files []nodemachine.File
	for _, name := range releaseDefinitions(ctx, "config-operator", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler") {
		files = append(files, nodemachine.File{Path: "opt/check/definitions/" + filepath.Base(name), Mode: 0o644, Content: suite.Must(os.ReadFile(name))})
	}
	Expect(r.Put(ctx, files...)).To(Succeed())
}

// releaseDefinitions returns the files of the definitions that these operators bring.
func releaseDefinitions(ctx context.Context, operators ...string) (files []string) {
	module := suite.Must(assets.ModuleFolder(ctx, "github.com/openshift/api"))
	for _, operator := range operators {
		names := suite.Must(filepath.Glob(filepath.Join(module, "payload-manifests", "crds", "*_"+operator+"_*.crd.yaml")))
		files = append(files, slices.DeleteFunc(names, func(name string) bool { return !ofRelease(name) })...)
	}
	return files
}

func ofRelease(file string) bool {
	return !slices.ContainsFunc([]string{"Hypershift", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "OKD"},
		func(other string) bool { return strings.Contains(filepath.Base(file), "-"+other) })
}

// etcdEntry is a key of etcd.
type etcdEntry struct {
	Key, Value []byte
	// Version counts the writes since it was created.
	Version int `json:",string"`
}

const (
	secretName = "sno-encrypted"
	secretText = "plain-text-of-the-secret"
)

// secrets creates a Secret. It returns the number of all Secrets in etcd, and the faults of those that are not encrypted
// since their first write.
func (m *machine) secrets(ctx context.Context, c controlPlane) (number int, faults []string) {
	m.run(ctx, c.kubectl+"create secret generic "+secretName+" --from-literal=key="+secretText)
	end := strings.TrimSuffix(c.etcdSecrets, "/") + "0" // the next character after "/"
	query := suite.Must(json.Marshal(map[string]any{"key": []byte(c.etcdSecrets), "range_end": []byte(end)}))
	// The shell resolves the patterns, and curl reports missing files.
	text := m.run(ctx, `set -- `+c.etcdFiles+`
test $# -eq 3 || { echo "not one file each: $*" >&2; exit 1; }
exec curl --silent --show-error --fail-with-body --cacert "$1" --cert "$2" --key "$3" --data '`+string(query)+`' https://localhost:2379/v3/kv/range`)
	var response struct{ Kvs []etcdEntry }
	Expect(json.Unmarshal([]byte(text), &response)).To(Succeed())
	Expect(slices.ContainsFunc(response.Kvs, etcdEntry.own)).To(BeTrue(), "etcd has the Secret")
	for _, entry := range response.Kvs {
		if fault := entry.fault(); fault != "" {
			faults = append(faults, fault)
		}
	}
	return len(response.Kvs), faults
}

// own reports whether it is the Secret of this suite.
func (e etcdEntry) own() bool { return strings.HasSuffix(string(e.Key), "/"+secretName) }

// fault returns why it is not encrypted, or nothing. The Secret of this suite must have been written once, so it was
// never in plain text.
func (e etcdEntry) fault() string {
	value := string(e.Value)
	switch {
	case !strings.HasPrefix(value, "k8s:enc:aescbc:") && !strings.HasPrefix(value, "k8s:enc:aesgcm:"):
		return fmt.Sprintf("%s begins with %q", e.Key, value[:min(len(value), 16)])
	case strings.Contains(value, secretText):
		return fmt.Sprintf("%s contains the text", e.Key)
	case e.own() && e.Version != 1:
		return fmt.Sprintf("%s was written %d times", e.Key, e.Version)
	}
	return ""
}
