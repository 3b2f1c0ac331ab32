// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// recorded has outputs of the operators' render commands, if they are there. Those are of the bootstrap phase, so the
// small files of testdata/operators have what operators write later.
const recorded = "../../shared/payload/"

const kubeController = "07-kube-controller-manager/"

var operators = []struct{ name, ours, recorded string }{
	{"etcd", "etcd/testdata/openshift/one-pod.yaml", "05-etcd/etc-kubernetes/manifests/etcd-member-pod.yaml"},
	{"kube-apiserver", "kubeapiserver/testdata/one-node-openshift/pod.yaml", "06-kube-apiserver/bootstrap-manifests/kube-apiserver-pod.yaml"},
	{"kube-controller-manager", "kubecontrollermanager/testdata/openshift/pod.yaml", kubeController + "bootstrap-manifests/kube-controller-manager-pod.yaml"},
	{"cluster-policy-controller", "kubecontrollermanager/testdata/openshift/cluster-policy-controller-config.yaml", kubeController + "cpc-config.yaml"},
	{"kube-scheduler", "kubescheduler/testdata/openshift/pod.yaml", "08-kube-scheduler/bootstrap-manifests/kube-scheduler-pod.yaml"},
}

// What an operator's pod needs in a running cluster, ours has too (R-REN-1, R-REN-9).
func TestOperatorsPods(t *testing.T) {
	for _, o := range operators {
		t.Run(o.name, func(t *testing.T) {
			ours := fields(t, o.ours)
			for field, want := range fields(t, "testdata/operators/"+o.name+".yaml") {
				if got := ours[field]; got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
		})
	}
}

// Every difference from the pods that real renders write has a reason in differences.yaml, and every reason a
// difference.
func TestRecordedPods(t *testing.T) {
	if _, err := os.Stat(recorded); err != nil {
		t.Skipf("no recorded outputs of real renders: %v", err)
	}
	text, err := os.ReadFile("testdata/operators/differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var allowed []struct{ Fields, Reason string }
	if err := yaml.UnmarshalStrict(text, &allowed); err != nil {
		t.Fatal(err)
	}
	used, patterns := make([]bool, len(allowed)), make([]*regexp.Regexp, len(allowed))
	for i, a := range allowed {
		patterns[i] = regexp.MustCompile("^(" + a.Fields + ")$")
	}
	for _, o := range operators {
		ours, theirs := fields(t, o.ours), fields(t, recorded+o.recorded)
		all := maps.Clone(ours)
		maps.Copy(all, theirs)
		for _, field := range slices.Sorted(maps.Keys(all)) {
			if ours[field] == theirs[field] {
				continue
			}
			i := slices.IndexFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(o.name + " " + field) })
			if i < 0 || allowed[i].Reason == "" {
				t.Errorf("%s %s: ours is %q, the recorded one %q: change it, or add the reason to differences.yaml", o.name, field, ours[field], theirs[field])
				continue
			}
			used[i] = true
		}
	}
	for i, a := range allowed {
		if !used[i] {
			t.Errorf("differences.yaml: nothing differs in %s", a.Fields)
		}
	}
}

// fields returns the values of a file by their paths. Elements of lists have their names as keys; of a container's
// command line only the flags are compared, since the scripts around them are ours.
func fields(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	all := map[string]string{}
	add(all, "", object)
	return all
}

var flag = regexp.MustCompile(`(--[a-z][-a-z0-9]*)(?:[= ]("[^"]*"|[^\s'"\\]+))?`)

func add(all map[string]string, at string, value any) {
	switch value := value.(type) {
	case float64:
		all[at] = strconv.FormatFloat(value, 'f', -1, 64)
	case map[string]any:
		if len(value) == 0 {
			all[at] = "{}"
		}
		for key, v := range value {
			if key == "command" || key == "args" {
				for _, f := range flag.FindAllStringSubmatch(strings.Trim(fmt.Sprint(v), "[]"), -1) {
					all[at+".flags."+f[1]] += " " + strings.TrimPrefix(f[2], "--")
				}
				continue
			}
			add(all, strings.TrimPrefix(at+"."+key, "."), v)
		}
	case []any:
		for i, v := range value {
			add(all, fmt.Sprintf("%s[%s]", at, keyOf(i, v)), v)
		}
	default:
		text := fmt.Sprint(value)
		if strings.HasSuffix(at, ".image") {
			text, _, _ = strings.Cut(path.Base(strings.ReplaceAll(text, "@", ":")), ":")
		}
		all[at] = text
	}
}

// keyOf returns what identifies an element of a list.
func keyOf(i int, element any) string {
	if object, is := element.(map[string]any); is {
		for _, key := range []string{"mountPath", "name", "containerPort", "operator"} {
			if object[key] != nil {
				return fmt.Sprint(object[key])
			}
		}
	}
	return fmt.Sprint(i)
}
