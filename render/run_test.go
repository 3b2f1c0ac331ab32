// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/etcd"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubeapiserver"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/kubescheduler"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
)

const year = 365 * 24 * time.Hour

func settings(input string, profile inputs.Profile, validity time.Duration) (*inputs.Settings, error) {
	cluster, err := inputs.Read(os.DirFS("testdata/input/"+input), time.Now())
	if err != nil {
		return nil, err
	}
	o := inputs.Options{Profile: profile, Version: "1.35.2", Validity: validity, Images: map[string]string{}}
	if profile == inputs.OpenShift {
		o.Release = "4.22.0"
		for _, name := range inputs.OpenShiftImages {
			o.Images[name] = "registry.example.test/" + name + ":1"
		}
	}
	return cluster.Settings(o)
}

// rendered caches one result of each profile, because making keys takes seconds.
var rendered = map[inputs.Profile]func() (*render.Result, error){
	inputs.Kubernetes: sync.OnceValues(func() (*render.Result, error) { return once(inputs.Kubernetes) }),
	inputs.OpenShift:  sync.OnceValues(func() (*render.Result, error) { return once(inputs.OpenShift) }),
}

func once(profile inputs.Profile) (*render.Result, error) {
	s, err := settings("one-node-encrypted", profile, 0)
	if err != nil {
		return nil, err
	}
	return render.Run(context.Background(), s, render.Options{})
}

func must(t *testing.T, profile inputs.Profile) *render.Result {
	t.Helper()
	result, err := rendered[profile]()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func byPath(list []files.File) map[string]string {
	found := map[string]string{}
	for _, f := range list {
		found[f.Path] = string(f.Content)
	}
	return found
}

var nodePath = regexp.MustCompile(`/etc/kubernetes/static-pod-(resources|certs)/[A-Za-z0-9._/-]+`)

// Every file that a command, config or kubeconfig names is installed, and all images are known, in both profiles (R-REN-1,
// R-REN-8, R-REN-9).
func TestNamedFilesExist(t *testing.T) {
	for profile := range rendered {
		t.Run(string(profile), func(t *testing.T) {
			installed := byPath(must(t, profile).Files)
			for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				manifest, exists := installed["etc/kubernetes/manifests/"+component+"-pod.yaml"]
				if !exists {
					t.Errorf("%s has no manifest", component)
					continue
				}
				var pod corev1.Pod
				if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
					t.Fatal(err)
				}
				for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
					if c.Image == "" {
						t.Errorf("container %s of %s has no image", c.Name, component)
					}
				}
				revision := "etc/kubernetes/static-pod-resources/" + component + "-pod-1/"
				texts := []string{manifest}
				for name, content := range installed {
					if strings.HasPrefix(name, revision) && (strings.HasSuffix(name, "kubeconfig") || strings.HasSuffix(name, "config.yaml")) {
						texts = append(texts, content)
					}
				}
				checked := 0
				for _, name := range nodePath.FindAllString(strings.Join(texts, "\n"), -1) {
					var file string
					switch rest, isCerts := strings.CutPrefix(name, "/etc/kubernetes/static-pod-certs/"); {
					case isCerts && component == "etcd":
						file = "etc/kubernetes/static-pod-resources/etcd-certs/" + rest
					case isCerts:
						file = "etc/kubernetes/static-pod-resources/" + component + "-certs/" + rest
					case strings.Contains(name, "-pod-1") || strings.HasSuffix(name, "/"+component+"-certs"):
						file = strings.TrimPrefix(name, "/") // a volume of the host
					default:
						file = revision + strings.TrimPrefix(name, "/etc/kubernetes/static-pod-resources/")
					}
					isFolder := func(installed string) bool { return strings.HasPrefix(installed, strings.TrimSuffix(file, "/")+"/") }
					if strings.Contains(file, "configmaps/trusted-ca-bundle/") {
						continue // A shell copies it if it is there.
					}
					if _, exists := installed[file]; !exists && !slices.ContainsFunc(slices.Collect(maps.Keys(installed)), isFolder) {
						t.Errorf("%s names %s, but there is no %s", component, name, file)
					}
					checked++
				}
				if checked < 3 {
					t.Errorf("%s names only %d files: the check is broken", component, checked)
				}
			}
		})
	}
}

// Operators take the first ConfigMap of a pod for that of its manifest.
func TestManifestIsFirst(t *testing.T) {
	for _, pod := range []staticpods.Pod{etcd.StaticPod(nil), kubeapiserver.StaticPod(nil), kubecontrollermanager.StaticPod(nil), kubescheduler.StaticPod(nil)} {
		if first := pod.ConfigMaps[0].Name; first != pod.Name {
			t.Errorf("the first ConfigMap is %s, want %s", first, pod.Name)
		}
	}
}

// The operators' resources have revision 1 of the node, from which an operator continues.
func TestRevisionsContinue(t *testing.T) {
	for _, object := range must(t, inputs.OpenShift).Objects {
		var status *operatorv1.StaticPodOperatorStatus
		switch o := object.(type) {
		case *operatorv1.Etcd:
			status = &o.Status.StaticPodOperatorStatus
		case *operatorv1.KubeAPIServer:
			status = &o.Status.StaticPodOperatorStatus
		case *operatorv1.KubeControllerManager:
			status = &o.Status.StaticPodOperatorStatus
		case *operatorv1.KubeScheduler:
			status = &o.Status.StaticPodOperatorStatus
		default:
			continue
		}
		want := []operatorv1.NodeStatus{{NodeName: "master-0", CurrentRevision: 1}}
		if diff := cmp.Diff(want, status.NodeStatuses); diff != "" || status.LatestAvailableRevision != 1 {
			t.Errorf("%T: latest revision %d, nodes (-want +got):\n%s", object, status.LatestAvailableRevision, diff)
		}
	}
}

func content(t *testing.T, result *render.Result) map[string]string {
	t.Helper()
	manifests, err := export.Manifests(result.Objects)
	if err != nil {
		t.Fatal(err)
	}
	all := byPath(result.Files)
	for _, f := range export.Files(manifests) {
		all[path.Join("manifests", f.Path)] = string(f.Content)
	}
	for name, kubeconfig := range result.Kubeconfigs {
		all[path.Join("auth", name)] = string(kubeconfig)
	}
	return all
}

// With components in another order the run fails, and the error names them (R-REN-4).
func TestOrderOfComponents(t *testing.T) {
	if testing.Short() {
		t.Skip("makes most keys three times")
	}
	s, err := settings("one-node", inputs.Kubernetes, 0)
	if err != nil {
		t.Fatal(err)
	}
	plan := render.Plan(s)
	for name, test := range map[string]struct {
		late     string // component whose steps run last
		want     error
		contains string
	}{
		"etcd after kube-apiserver":             {"etcd", loop.ErrOrder, "etcd"},
		"kube-apiserver after the others":       {"kube-apiserver", loop.ErrOrder, "kube-apiserver"},
		"kube-controller-manager's signer late": {"kube-controller-manager", loop.ErrOrder, "kube-controller-manager"},
	} {
		t.Run(name, func(t *testing.T) {
			var early, late []loop.Step
			for _, step := range plan {
				if strings.HasPrefix(step.Loops[0].Name, test.late+":") || strings.HasPrefix(step.Loops[0].Name, "openshift-"+test.late+":") {
					late = append(late, step)
				} else {
					early = append(early, step)
				}
			}
			api, err := render.NewStore(s)
			if err != nil {
				t.Fatal(err)
			}
			err = loop.Run(t.Context(), api, slices.Concat(early, late), loop.Options{Timeout: 5 * time.Minute})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.contains) {
				t.Errorf("got %v, want %v that names %s", err, test.want, test.contains)
			}
		})
	}
}

func TestNode(t *testing.T) {
	s, err := settings("three-nodes", inputs.Kubernetes, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"", "worker-9"} {
		if _, err := render.Run(t.Context(), s, render.Options{Node: node}); !errors.Is(err, render.ErrUnknownNode) || !strings.Contains(err.Error(), "master-1") {
			t.Errorf("node %q: got %v, want %v with the names of the nodes", node, err, render.ErrUnknownNode)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	s, err := settings("one-node", inputs.Kubernetes, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := render.Run(b.Context(), s, render.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
