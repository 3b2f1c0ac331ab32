// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/testcluster/assets"
)

// imagesOf are the images that e2e.test names, by whether a node of these clusters has them.
type imagesOf struct{ agnhost, pause, missing []string }

func listImages(ctx context.Context, suite assets.Assets) (imagesOf, error) {
	out, err := exec.CommandContext(ctx, suite.Program("e2e.test"), "--list-images").Output()
	if err != nil {
		return imagesOf{}, fmt.Errorf("list the images of e2e.test: %w", err)
	}
	return sortImages(strings.Fields(string(out)))
}

func sortImages(names []string) (imagesOf, error) {
	var all imagesOf
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		switch {
		case strings.HasPrefix(name, "registry.k8s.io/e2e-test-images/agnhost:"):
			all.agnhost = append(all.agnhost, name)
		case strings.HasPrefix(name, "registry.k8s.io/pause:"):
			all.pause = append(all.pause, name)
		case !strings.HasPrefix(name, "invalid."): // a test needs that it cannot be pulled
			all.missing = append(all.missing, name)
		}
	}
	if len(all.agnhost) == 0 || len(all.pause) == 0 || len(all.missing) == 0 {
		return all, fmt.Errorf("%w: e2e.test names the images %q, want agnhost, pause and others", ErrTests, names)
	}
	return all, nil
}

var missingPattern = regexp.MustCompile(`the image (\S+) is not on the node`)

// missingImage returns the name of the image, without its registry and tag, that a test could not use, or nothing.
func missingImage(text string) string {
	match := missingPattern.FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	name, _, _ := strings.Cut(match[1][strings.LastIndex(match[1], "/")+1:], ":")
	return name
}

const (
	policyName = "sno-images-of-tests"
	poll       = 200 * time.Millisecond
)

// refuseImages has the API server refuse pods with images that no node has, so that their tests fail at once and with
// the name of the image, not after minutes.
func refuseImages(ctx context.Context, kube kubernetes.Interface, missing []string) error {
	quoted := make([]string, len(missing))
	for i, name := range missing {
		quoted[i] = "'" + name + "'"
	}
	optional := func(field string) string {
		return " + (has(object.spec." + field + ") ? object.spec." + field + ".map(c, c.image) : [])"
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/ephemeralcontainers"},
					},
				},
			}}},
			Variables: []admissionv1.Variable{
				{Name: "images", Expression: "object.spec.containers.map(c, c.image)" + optional("initContainers") + optional("ephemeralContainers") +
					" + (has(object.spec.volumes) ? object.spec.volumes.filter(v, has(v.image) && has(v.image.reference)).map(v, v.image.reference) : [])"},
				{Name: "missing", Expression: "variables.images.filter(i, i in [" + strings.Join(quoted, ", ") + "])"},
			},
			Validations: []admissionv1.Validation{{
				Expression:        "size(variables.missing) == 0",
				MessageExpression: "'the image ' + variables.missing[0] + ' is not on the node'",
			}},
		},
	}
	if _, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("refuse images: %w", err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("refuse images: %w", err)
	}
	return inForce(ctx, kube, missing[0])
}

func inForce(ctx context.Context, kube kubernetes.Interface, missing string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: missing}}},
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last != nil && missingImage(last.Error()) != "", nil
	})
	if err != nil {
		return fmt.Errorf("wait until missing images are refused: %w: the answer is %w", err, last)
	}
	return nil
}
