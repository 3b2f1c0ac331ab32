package checks

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CopyImage is what copies of Deployments run where nobody says otherwise and no pod shows an image that would do. It does nothing, for ever.
const CopyImage = "registry.k8s.io/pause:3.10"

// program is what copies run: an image, and a command where its own is not one that keeps running.
type program struct {
	image   string
	command []string
	// from says where the image was found, for the person who watches.
	from string
}

// sleepForever is what a shell is told to do.
const sleepForever = "exec sleep 2147483647"

// programOf is what copies run. An image that is asked for is run as it is. Otherwise it is one that most nodes have already, because a pod on them runs a shell of
// it: a cluster that is cut off can pull nothing else.
func programOf(asked string, pods []corev1.Pod) program {
	if asked != "" {
		return program{image: asked, from: "asked for"}
	}
	type candidate struct {
		program
		nodes map[string]bool
	}
	found := map[[2]string]*candidate{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || !podReady(pod) || pod.Spec.NodeName == "" {
			continue
		}
		for _, container := range pod.Spec.Containers {
			if len(container.Command) == 0 || !isShell(container.Command[0]) {
				continue
			}
			key := [2]string{container.Image, container.Command[0]}
			if found[key] == nil {
				found[key] = &candidate{nodes: map[string]bool{}, program: program{
					image: container.Image, command: []string{container.Command[0], "-c", sleepForever},
					from: fmt.Sprintf("as pod %s/%s does", pod.Namespace, pod.Name),
				}}
			}
			found[key].nodes[pod.Spec.NodeName] = true
		}
	}
	var all []*candidate
	for _, each := range found {
		all = append(all, each)
	}
	if len(all) == 0 {
		return program{image: CopyImage, from: "since no pod of OpenShift runs a shell"}
	}
	return slices.MinFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.image, b.image), cmp.Compare(a.command[0], b.command[0]))
	}).program
}

func isShell(command string) bool {
	return slices.Contains([]string{"sh", "bash"}, path.Base(command))
}

// imageProblem says why the image of a copy does not run on a node, or nothing. It is nothing that the copied Deployment could help.
func imageProblem(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return fmt.Sprintf("image %s cannot be pulled (%s): choose one that the nodes can have with --image", status.Image, waiting.Reason)
		case "CrashLoopBackOff", "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
			return fmt.Sprintf("image %s does not keep running (%s): choose one that does with --image", status.Image, waiting.Reason)
		}
	}
	return ""
}
