// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

// checkManifests renders every kustomization, and checks that its Deployments suit the only node of a cluster and
// that their programs have the flags.
func checkManifests(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	files, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	var faults Findings
	programs := map[string][]string{} // arguments by image, which overlays share
	for _, name := range files {
		if path.Base(name) != "kustomization.yaml" || strings.Contains(name, "/testdata/") || !ws.InFocus(name) {
			continue
		}
		dir := path.Dir(name)
		fmt.Fprintf(w, "      %s\n", dir)
		rendered, err := render(ctx, ws, dir)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		pods, err := podsOf(rendered)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		for _, p := range pods {
			for _, fault := range p.faults() {
				faults = append(faults, dir+": "+fault)
			}
			for _, c := range p.Spec.Template.Spec.Containers {
				programs[c.Image] = append(programs[c.Image], strings.Join(c.Args, " "))
			}
		}
	}
	for image, all := range programs {
		slices.Sort(all)
		for _, args := range slices.Compact(all) {
			faults = append(faults, flagFaults(ctx, ws, image, strings.Fields(args))...)
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults).errorOrNil()
}

func render(ctx context.Context, ws *workspace.Workspace, dir string) (string, error) {
	out, err := ws.Command(ctx, ".", nil, ws.Path("tools/run"), "kustomize", "build", dir).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s: kustomize build: %w\n%s", dir, err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: kustomize build: %w", dir, err)
	}
	return string(out), nil
}

type deployment struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				PriorityClassName  string
				ServiceAccountName string
				SecurityContext    struct {
					RunAsNonRoot   bool
					SeccompProfile struct{ Type string }
				}
				Containers []container
			}
		}
	}
}

type container struct {
	Name, Image                   string
	Args                          []string
	LivenessProbe, ReadinessProbe *struct{}
	Resources                     struct{ Requests, Limits map[string]any }
	SecurityContext               struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
}

func podsOf(manifests string) ([]deployment, error) {
	var found []deployment
	for _, manifest := range strings.Split(manifests, "\n---\n") {
		var d deployment
		if err := yaml.Unmarshal([]byte(manifest), &d); err != nil {
			return nil, fmt.Errorf("reading what was rendered: %w", err)
		}
		if d.Kind == "Deployment" {
			found = append(found, d)
		}
	}
	return found, nil
}

// faults compares a Deployment with the requirements of its pods: the restricted profile of pod security, a priority
// for a full node, and no limits, by which the kernel would kill or throttle them when the node is busiest.
func (d *deployment) faults() []string {
	var faults []string
	must := func(holds bool, what string) {
		if !holds {
			faults = append(faults, "Deployment "+d.Metadata.Name+": "+what)
		}
	}
	pod := d.Spec.Template.Spec
	must(pod.PriorityClassName == "system-cluster-critical", "lacks the priority class system-cluster-critical")
	must(pod.ServiceAccountName != "", "has no service account")
	must(pod.SecurityContext.RunAsNonRoot, "may run as root")
	must(pod.SecurityContext.SeccompProfile.Type == "RuntimeDefault", "lacks the seccomp profile RuntimeDefault")
	for _, c := range pod.Containers {
		allowed := c.SecurityContext.AllowPrivilegeEscalation
		must(allowed != nil && !*allowed, c.Name+" may escalate its privileges")
		must(c.SecurityContext.ReadOnlyRootFilesystem, c.Name+" may write its root file system")
		must(slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}), c.Name+" does not drop all capabilities")
		must(c.LivenessProbe != nil && c.ReadinessProbe != nil, c.Name+" lacks a probe")
		must(c.Resources.Requests["cpu"] != nil && c.Resources.Requests["memory"] != nil, c.Name+" does not request CPU and memory")
		must(len(c.Resources.Limits) == 0, c.Name+" has limits")
	}
	return faults
}

const koPrefix = "ko://" + workspace.ModulePrefix

func flagFaults(ctx context.Context, ws *workspace.Workspace, image string, args []string) []string {
	verbs := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if !strings.HasPrefix(image, koPrefix) || verbs < 0 {
		return nil
	}
	program := strings.TrimPrefix(image, koPrefix)
	i := slices.IndexFunc(ws.Modules, func(m workspace.Module) bool { return strings.HasPrefix(program, m.Dir+"/") })
	if i < 0 {
		return []string{image + ": no module of this repository has this program"}
	}
	m := ws.Modules[i]
	command := append([]string{"run", "./" + strings.TrimPrefix(program, m.Dir+"/")}, append(args[:verbs:verbs], "--help")...)
	// Some programs return an error for --help.
	help, err := ws.Command(ctx, m.Dir, ws.Environment(m), "go", command...).CombinedOutput()
	known := flagsIn(string(help))
	if len(known) == 0 {
		return []string{fmt.Sprintf("%s: its help shows no flags: %v\n%s", program, err, help)}
	}
	var faults []string
	for _, arg := range args[verbs:] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !slices.Contains(known, name) {
			faults = append(faults, fmt.Sprintf("%s: has no flag --%s, which a manifest uses", program, name))
		}
	}
	return faults
}

// helpFlag matches a flag in the help of the standard library ("-name") and of pflag ("-n, --name" or "--name").
var helpFlag = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--?([a-z][a-z0-9-]*)`)

func flagsIn(help string) []string {
	var names []string
	for _, match := range helpFlag.FindAllStringSubmatch(help, -1) {
		names = append(names, match[1])
	}
	return names
}
