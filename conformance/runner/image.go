// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/catalogue"
)

// CopyImage is the image of copies if none is configured and no pod runs a suitable one.
const CopyImage = "registry.k8s.io/pause:3.10"

// program is the image of copies, and a command if its own may end.
type program struct {
	image   string
	command []string
	// from is the origin of the image, for the progress output.
	from string
}

const sleepForever = "exec sleep 2147483647"

// programOf returns the configured image, or one with a shell that runs on most nodes already, because a disconnected
// cluster can pull no other.
func programOf(configured string, pods []corev1.Pod) program {
	if configured != "" {
		return program{image: configured, from: "as configured"}
	}
	type candidate struct{ image, shell string }
	nodes, from := map[candidate]map[string]bool{}, map[candidate]string{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || !catalogue.PodReady(pod) || pod.Spec.NodeName == "" {
			continue
		}
		for _, container := range pod.Spec.Containers {
			if len(container.Command) == 0 || !isShell(container.Command[0]) {
				continue
			}
			c := candidate{container.Image, container.Command[0]}
			if nodes[c] == nil {
				nodes[c], from[c] = map[string]bool{}, pod.Namespace+"/"+pod.Name
			}
			nodes[c][pod.Spec.NodeName] = true
		}
	}
	if len(nodes) == 0 {
		return program{image: CopyImage, from: "because no pod of OpenShift runs a shell"}
	}
	best := slices.MinFunc(slices.Collect(maps.Keys(nodes)), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(a.image, b.image), cmp.Compare(a.shell, b.shell))
	})
	return program{image: best.image, command: []string{best.shell, "-c", sleepForever}, from: "which pod " + from[best] + " runs too"}
}

func isShell(command string) bool {
	return slices.Contains([]string{"sh", "bash"}, path.Base(command))
}

// imageProblem returns why the image of a copy does not run, or "". The copied Deployment is not the cause.
func imageProblem(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return fmt.Sprintf("image %s cannot be pulled (%s): choose another one with --image", status.Image, waiting.Reason)
		case "CrashLoopBackOff", "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
			return fmt.Sprintf("image %s does not keep running (%s): choose another one with --image", status.Image, waiting.Reason)
		}
	}
	return ""
}
