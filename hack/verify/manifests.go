// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

// checkManifests renders every kustomization, and checks that its Deployments suit the only node of a cluster and
// that their programs have the flags.
func checkManifests(ctx context.Context, r repo) error {
	files, err := r.Files(ctx)
	if err != nil {
		return err
	}
	var faults findings
	arguments := map[string][]string{} // by image, which overlays share
	for _, name := range files {
		if path.Base(name) != "kustomization.yaml" || strings.Contains(name, "/testdata/") {
			continue
		}
		dir := path.Dir(name)
		rendered, err := workspace.Output(r.Command(ctx, ".", r.Path("tools/run"), "kustomize", "build", dir))
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", dir, err))
			continue
		}
		for manifest := range strings.SplitSeq(string(rendered), "\n---\n") {
			var d appsv1.Deployment
			if err := yaml.Unmarshal([]byte(manifest), &d); err != nil {
				return fmt.Errorf("%s: reading what was rendered: %w", dir, err)
			}
			if d.Kind != "Deployment" {
				continue
			}
			for _, fault := range deploymentFaults(d) {
				faults = append(faults, dir+": "+fault)
			}
			for _, c := range d.Spec.Template.Spec.Containers {
				arguments[c.Image] = append(arguments[c.Image], strings.Join(c.Args, " "))
			}
		}
	}
	for image, all := range arguments {
		slices.Sort(all)
		for _, args := range slices.Compact(all) {
			faults = append(faults, r.flagFaults(ctx, image, strings.Fields(args))...)
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults).orNil()
}

// deploymentFaults compares a Deployment with the requirements of its pods: the restricted profile of pod security, a
// priority for a full node, and no limits, by which the kernel would kill or throttle them when the node is busiest.
func deploymentFaults(d appsv1.Deployment) (faults []string) {
	must := func(holds bool, what string) {
		if !holds {
			faults = append(faults, "Deployment "+d.Name+": "+what)
		}
	}
	pod := d.Spec.Template.Spec
	security := cmp.Or(pod.SecurityContext, &corev1.PodSecurityContext{})
	must(pod.PriorityClassName == "system-cluster-critical", "lacks the priority class system-cluster-critical")
	must(pod.ServiceAccountName != "", "has no service account")
	must(ptr.Deref(security.RunAsNonRoot, false), "may run as root")
	must(ptr.Deref(security.SeccompProfile, corev1.SeccompProfile{}).Type == corev1.SeccompProfileTypeRuntimeDefault, "lacks the seccomp profile RuntimeDefault")
	for _, c := range pod.Containers {
		security := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
		must(!ptr.Deref(security.AllowPrivilegeEscalation, true), c.Name+" may escalate its privileges")
		must(ptr.Deref(security.ReadOnlyRootFilesystem, false), c.Name+" may write its root file system")
		must(slices.Equal(ptr.Deref(security.Capabilities, corev1.Capabilities{}).Drop, []corev1.Capability{"ALL"}), c.Name+" does not drop all capabilities")
		must(c.LivenessProbe != nil && c.ReadinessProbe != nil, c.Name+" lacks a probe")
		must(!c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero(), c.Name+" does not request CPU and memory")
		must(len(c.Resources.Limits) == 0, c.Name+" has limits")
	}
	return faults
}

// helpFlag matches a flag in the help of the standard library ("-name") and of pflag ("-n, --name" or "--name").
var helpFlag = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--?([a-z][a-z0-9-]*)`)

// flagFaults runs the help of a program of this repository.
func (r repo) flagFaults(ctx context.Context, image string, args []string) (faults findings) {
	program, ours := strings.CutPrefix(image, "ko://"+workspace.ModulePrefix)
	verbs := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if !ours || verbs < 0 {
		return nil
	}
	// Some programs return an error for --help.
	help, err := r.Command(ctx, ".", "go", slices.Concat([]string{"run", "./" + program}, args[:verbs], []string{"--help"})...).CombinedOutput()
	known := helpFlag.FindAllStringSubmatch(string(help), -1)
	if len(known) == 0 {
		return findings{fmt.Sprintf("%s: its help shows no flags: %v\n%s", program, err, help)}
	}
	for _, arg := range args[verbs:] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !slices.ContainsFunc(known, func(match []string) bool { return match[1] == name }) {
			faults = append(faults, fmt.Sprintf("%s: has no flag --%s, which a manifest uses", program, name))
		}
	}
	return faults
}
