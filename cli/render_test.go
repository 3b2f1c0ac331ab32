package cli_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestRender(t *testing.T) {
	for name, test := range map[string]struct {
		args        []string
		deployments int
		images      string
	}{
		"all":           {nil, 1, "ko://github.com/solonode/sno/cli/cmd/kubectl-sno"},
		"with an image": {[]string{"--image=r/kubectl-sno:v1"}, 1, "r/kubectl-sno:v1"},
		"two modules":   {[]string{"--modules=ingress,auth", "--image=r/{module}-controller@sha256:x"}, 2, "r/ingress-controller@sha256:x r/auth-controller@sha256:x"},
		"one module":    {[]string{"--modules=auth", "--image=r/auth"}, 1, "r/auth"},
	} {
		is := run(t, append([]string{"render"}, test.args...)...)
		if is.code != 0 || is.err != "" {
			t.Errorf("%s: %d, %s", name, is.code, is.err)
		}
		var images []string
		for document := range strings.SplitSeq(is.out, "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil || u.GetKind() == "" || u.GetName() == "" {
				t.Fatalf("%s: %v in\n%s", name, err, document)
			}
			if u.GetKind() != "Deployment" {
				continue
			}
			containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			if err != nil || len(containers) != 1 {
				t.Fatalf("%s: %v, %v", name, containers, err)
			}
			images = append(images, containers[0].(map[string]any)["image"].(string))
		}
		if len(images) != test.deployments || strings.Join(images, " ") != test.images {
			t.Errorf("%s: images %v, want %s", name, images, test.images)
		}
	}
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"one image for two": {[]string{"--modules=ingress,auth", "--image=r/x"}, "put {module} into --image=r/x"},
		"modules of none":   {[]string{"--image=r/{module}"}, "name --modules"},
		"unknown":           {[]string{"--modules=dns"}, `unknown module "dns"`},
	} {
		if is := run(t, append([]string{"render"}, test.args...)...); is.code != 1 || is.out != "" || !strings.Contains(is.err, test.err) {
			t.Errorf("%s: %d\n%s%s", name, is.code, is.out, is.err)
		}
	}
}
