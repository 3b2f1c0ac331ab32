// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/conformance/catalogue"
)

// TestProgramOf: the default image runs already, on as many nodes as possible, and keeps running.
func TestProgramOf(t *testing.T) {
	pod := func(name, node, image string, ready corev1.ConditionStatus, command ...string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: image, Command: command}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	pulling := pod("pulling", "b", "a/pulled", yes, "/bin/sh", "-c", "x")
	pulling.Status.Phase = corev1.PodPending
	pods := []corev1.Pod{
		pod("router", "a", "a/router", yes, "/usr/bin/router"), pod("router", "b", "a/router", yes, "/usr/bin/router"), pod("none", "a", "a/entry", yes), pod("none", "b", "a/entry", yes),
		pod("one", "a", "a/first", yes, "sh", "-c", "x"), pod("one-more", "a", "a/first", yes, "sh"),
		pod("resolver", "a", "a/tools", yes, "/bin/bash", "-c", "x"), pod("resolver", "b", "a/tools", yes, "/bin/bash", "-c", "x"),
		pod("broken", "a", "a/broken", no, "/bin/sh"), pod("broken", "b", "a/broken", no, "/bin/sh"), pod("broken", "c", "a/broken", no, "/bin/sh"), pulling,
	}
	for range 3 {
		if got := programOf("", pods); got.image != "a/tools" || !slices.Equal(got.command, []string{"/bin/bash", "-c", sleepForever}) || !strings.Contains(got.from, "openshift-dns/resolver") {
			t.Errorf("got %+v", got)
		}
		slices.Reverse(pods)
	}
	if got := programOf("my/own", pods); got.image != "my/own" || got.command != nil {
		t.Errorf("configured: %+v", got)
	}
	if got := programOf("", pods[:0]); got.image != CopyImage || got.command != nil {
		t.Errorf("no pods: %+v", got)
	}
}

func TestImageProblem(t *testing.T) {
	for reason, want := range map[string]string{
		"ErrImagePull": "cannot be pulled", "ImagePullBackOff": "cannot be pulled", "InvalidImageName": "cannot be pulled",
		"CrashLoopBackOff": "does not keep running", "CreateContainerError": "does not keep running", "ContainerCreating": "", "PodInitializing": "",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Image: "some/image", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
		}}}
		got := imageProblem(pod)
		if (got == "") != (want == "") {
			t.Errorf("%s: %q", reason, got)
		}
		for _, part := range []string{want, "some/image", reason} {
			if want != "" && !strings.Contains(got, part) {
				t.Errorf("%s: %q does not contain %q", reason, got, part)
			}
		}
	}
	running := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
	if got := imageProblem(running); got != "" {
		t.Errorf("it runs: %q", got)
	}
}

// TestPolicyError: rejections by policies are inconclusive, other errors are not.
func TestPolicyError(t *testing.T) {
	pods := schema.GroupKind{Kind: "Pod"}
	for err, policy := range map[error]bool{
		apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota")):   true,
		apierrors.NewBadRequest(`admission webhook "labels.example.com" denied the request: unknown label`): true,
		apierrors.NewInvalid(pods, "x", nil): false,
		&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: unknown label"}}: true,
		apierrors.NewTimeoutError("slow", 1): false,
	} {
		if got := policyError(err); errors.Is(got, catalogue.ErrInconclusive) != policy || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
