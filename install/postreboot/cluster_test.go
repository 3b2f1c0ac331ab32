// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/join/jointest"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const host = "master0"

// server is an API server with the operators' definitions, where all authenticated users may request certificates.
var server = apiserver.Shared{Prepare: func(ctx context.Context, config *rest.Config) error {
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return fmt.Errorf("find the folder of openshift/api: %w", err)
	}
	o := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, definition := range []string{
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_12_etcd_01_etcds-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_20_kube-apiserver_01_kubeapiservers-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-controller-manager_01_kubecontrollermanagers.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-scheduler_01_kubeschedulers.crd.yaml",
	} {
		o.Paths = append(o.Paths, filepath.Join(strings.TrimSpace(string(folder)), definition))
	}
	_, err = envtest.InstallCRDs(config, o)
	return errors.Join(err, jointest.Allow(ctx, config))
}}

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

type machine struct {
	*testing.T
	kubernetes.Interface
	config *rest.Config
	root   string
	// removed has the removed paths in order, and reloads counts those of systemd.
	removed []string
	reloads int
	at      func() error
}

// written has files of Ignition, and others that stay.
var written = map[string]string{
	node.BootstrapConfigs + "/more":       "",
	node.BootstrapStatus:                  `{"command": "bootstrap-in-place", "phases": [{"name": "write-disk"}]}`,
	node.Snapshot:                         "etcd",
	node.LogBundle:                        "bundle",
	node.GatherScript:                     "",
	node.MastersGatherScript:              "",
	node.Program:                          "program",
	node.UnitDir + "/" + node.RestoreUnit: "[Unit]\n",
	node.UnitDir + "/kubelet.service.d/" + node.RestoreDropIn: "[Unit]\nRequires=etcd-restore.service\n",
	node.UnitDir + "/" + node.PostRebootUnit:                  "[Unit]\n",
	node.UnitDir + "/multi-user.target.wants/other.service":   "",
	node.Preset:                         "enable other.service\nenable etcd-restore.service\nenable post-reboot.service\n",
	node.ManifestDir + "/etcd-pod.yaml": "{}",
}

// kept has the files that remain.
var kept = map[string]string{
	node.UnitDir + "/" + node.PostRebootUnit:                written[node.UnitDir+"/"+node.PostRebootUnit],
	node.UnitDir + "/multi-user.target.wants/other.service": "",
	node.Preset:                         "enable other.service\n",
	node.ManifestDir + "/etcd-pod.yaml": "{}",
}

func newMachine(t *testing.T, profile string) *machine {
	t.Helper()
	config := server.Running(t)
	m := &machine{T: t, Interface: kubernetes.NewForConfigOrDie(config), config: config, root: t.TempDir(), at: func() error { return nil }}
	m.empty()
	user := fixture.Must(server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil))
	kubeconfig := fixture.Must(user.KubeConfig())
	m.writeFiles(string(kubeconfig), profile)
	return m
}

func (m *machine) empty() {
	m.Helper()
	now := int64(0)
	del, everything := metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}
	fixture.NoError(m, m.CertificatesV1().CertificateSigningRequests().DeleteCollection(m.Context(), del, everything))
	fixture.NoError(m, m.CoreV1().Nodes().DeleteCollection(m.Context(), del, everything))
	for _, name := range []string{"bootstrap", "sno-install"} {
		if err := m.CoreV1().ConfigMaps("kube-system").Delete(m.Context(), name, del); !apierrors.IsNotFound(err) {
			fixture.NoError(m, err)
		}
	}
	m.remove("/apis/config.openshift.io/v1/clusterversions/version")
	for _, s := range staticPods {
		fixture.NoError(m, m.CoreV1().Pods(s.namespace).DeleteCollection(m.Context(), del, everything))
		m.remove("/apis/config.openshift.io/v1/clusteroperators/" + s.operator)
		m.remove("/apis/operator.openshift.io/v1/" + s.resource + "/cluster")
	}
}

func (m *machine) remove(path string) {
	m.Helper()
	if err := m.Discovery().RESTClient().Delete().AbsPath(path).Do(m.Context()).Error(); !apierrors.IsNotFound(err) {
		fixture.NoError(m, err)
	}
}

func (m *machine) writeFiles(kubeconfig, profile string) {
	m.Helper()
	m.put(node.BootstrapKubeconfig, kubeconfig)
	m.put(node.BootstrapSettings, fmt.Sprintf(
		"profile: %s\nclusterName: sno\nbaseDomain: example.com\nvalidity: 1h\ncreated: %q\nname: %s\naddresses: [192.0.2.10]\n",
		profile, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), host))
	for path, text := range written {
		m.put(path, text)
	}
	fixture.NoError(m, os.Symlink("/"+node.UnitDir+"/"+node.RestoreUnit, filepath.Join(m.root, node.UnitDir, "multi-user.target.wants", node.RestoreUnit)))
}

func (m *machine) put(path, text string) {
	m.Helper()
	fixture.Put(m, m.root, path, text)
}

// tree returns the files of the machine, except the kubelet's and what is in memory for this command, and empty folders.
func (m *machine) tree() map[string]string {
	m.Helper()
	files := map[string]string{}
	fixture.NoError(m, filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		relative := strings.TrimPrefix(path, m.root+"/")
		if err != nil || strings.HasPrefix(relative, "var/lib/kubelet") || relative == admittedPods {
			return err
		}
		if !entry.IsDir() {
			text, err := os.ReadFile(path)
			files[relative] = string(text)
			if entry.Type() == fs.ModeSymlink {
				files[relative], err = os.Readlink(path)
			}
			return err
		}
		if _, inUnits := strings.CutPrefix(relative, node.UnitDir); inUnits || relative == node.SnapshotDir {
			if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
				files[relative+"/"] = ""
			}
		}
		return nil
	}))
	return files
}

var errKilled = errors.New("killed")

func (m *machine) options() Options {
	return Options{
		Root: m.root, Interval: 10 * time.Millisecond, Now: time.Now,
		Systemctl: func(_ context.Context, arguments ...string) error {
			if strings.Join(arguments, " ") != "daemon-reload" {
				m.Errorf("systemctl %v", arguments)
			}
			m.reloads++
			return m.at()
		},
		BeforeRemove: func(path string) error {
			if err := m.at(); err != nil {
				return err
			}
			m.removed = append(m.removed, path)
			return nil
		},
	}
}

// step is an action of the cluster while the command waits for something.
type step struct {
	waits string
	do    func()
}

func (m *machine) run(phases []phase.Phase, steps ...step) error {
	m.Helper()
	limited, end := context.WithTimeout(m.Context(), time.Minute)
	defer end()
	ctx, cancel := context.WithCancelCause(limited)
	err := phase.Run(ctx, phases, phase.Options{Report: func(s phase.Status) {
		if err := m.at(); err != nil {
			cancel(err)
		}
		for _, p := range s.Phases {
			if p.State == phase.Running && len(steps) > 0 && strings.Contains(p.WaitingFor, steps[0].waits) {
				do := steps[0].do
				steps = steps[1:]
				do()
			}
		}
	}})
	if err == nil && len(steps) > 0 {
		m.Errorf("never waited for %q", steps[0].waits)
	}
	return err
}

func (m *machine) ask(name string, r jointest.Request) {
	m.Helper()
	r.Create(m, m.config, name)
}

func (m *machine) register(ready corev1.ConditionStatus) {
	m.Helper()
	jointest.Register(m, m, host, ready)
}

func (m *machine) serve() {
	m.Helper()
	jointest.Certificate(m, m.root, join.ServingCertificate, host, time.Now().Add(time.Hour))
}

func (m *machine) pod(s staticPod, revision string, ready corev1.ConditionStatus) {
	m.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if _, err := m.CoreV1().Namespaces().Create(m.Context(), namespace, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		fixture.NoError(m, err)
	}
	pods := m.CoreV1().Pods(s.namespace)
	p, err := pods.Get(m.Context(), s.name+"-"+host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p, err = pods.Create(m.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + host, Labels: map[string]string{"revision": revision}},
			Spec:       corev1.PodSpec{NodeName: host, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
	}
	fixture.NoError(m, err)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	fixture.Must(pods.UpdateStatus(m.Context(), p, metav1.UpdateOptions{}))
}

type state struct {
	// available, progressing and degraded are omitted if empty.
	available, progressing, degraded string
	node                             string
	current, latest                  int
}

var steady = state{"True", "False", "False", host, 4, 4}

func (m *machine) report(s staticPod, is state) {
	m.Helper()
	cluster, operator := "/apis/config.openshift.io/v1/clusteroperators/"+s.operator, "/apis/operator.openshift.io/v1/"+s.resource+"/cluster"
	var conditions []string
	for kind, status := range map[string]string{"Available": is.available, "Progressing": is.progressing, "Degraded": is.degraded} {
		if status != "" {
			conditions = append(conditions, fmt.Sprintf(
				`{"type": %q, "status": %q, "lastTransitionTime": "2026-11-25T08:00:00Z", "message": "%s for a reason"}`, kind, status, kind))
		}
	}
	m.patch(types.ApplyPatchType, cluster, fmt.Sprintf(`{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": %q}, "spec": {}}`, s.operator))
	m.patch(types.MergePatchType, cluster+"/status", `{"status": {"conditions": [`+strings.Join(conditions, ",")+`]}}`)
	kind := map[string]string{"etcds": "Etcd", "kubeapiservers": "KubeAPIServer", "kubecontrollermanagers": "KubeControllerManager", "kubeschedulers": "KubeScheduler"}[s.resource]
	m.remove(operator) // its revision cannot decrease
	m.patch(types.ApplyPatchType, operator, `{"apiVersion": "operator.openshift.io/v1", "kind": "`+kind+`", "metadata": {"name": "cluster"}, "spec": {}}`)
	// The API server refuses a revision together with a new node.
	status := fmt.Sprintf(`{"status": {"readyReplicas": 0, "latestAvailableRevision": %d, "nodeStatuses": [{"nodeName": %q}]}}`, is.latest, is.node)
	m.patch(types.MergePatchType, operator+"/status", status)
	m.patch(types.MergePatchType, operator+"/status", strings.Replace(status, "}]", fmt.Sprintf(`, "currentRevision": %d}]`, is.current), 1))
}

func (m *machine) patch(kind types.PatchType, path, body string) {
	m.Helper()
	request := m.Discovery().RESTClient().Patch(kind).AbsPath(path).Param("fieldManager", "test").Body([]byte(body))
	if kind == types.ApplyPatchType {
		request = request.Param("force", "true")
	}
	if err := request.Do(m.Context()).Error(); err != nil {
		m.Fatalf("%s: %v: %s", path, err, body)
	}
}

// takenOver sets all operators to steady, and their pods to Ready.
func (m *machine) takenOver() {
	m.Helper()
	for _, s := range staticPods {
		m.report(s, steady)
		m.pod(s, "4", corev1.ConditionTrue)
	}
}

func (m *machine) installed() {
	m.Helper()
	m.register(corev1.ConditionTrue)
	m.serve()
	m.takenOver()
	m.version("True")
}

func (m *machine) version(available string) {
	m.Helper()
	const path = "/apis/config.openshift.io/v1/clusterversions/version"
	m.patch(types.ApplyPatchType, path, `{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {"clusterID": "a"}}`)
	m.patch(types.MergePatchType, path+"/status", `{"status": {"desired": {"version": "5.0.0", "image": "i"}, "observedGeneration": 1, "versionHash": "h", "availableUpdates": [], "conditions": [
		{"type": "Progressing", "status": "True", "lastTransitionTime": "2026-11-25T08:00:00Z", "message": "Working towards 5.0.0"},
		{"type": "Available", "status": "`+available+`", "lastTransitionTime": "2026-11-25T08:00:00Z"}]}}`)
}

// published returns what the cluster has of the installation's status.
func (m *machine) published() map[string]string {
	m.Helper()
	c, err := m.CoreV1().ConfigMaps("kube-system").Get(m.Context(), "sno-install", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	fixture.NoError(m, err)
	return c.Data
}
