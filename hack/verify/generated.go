// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

const (
	roleFile = "config/rbac/role.yaml"
	// allRoleFile has the rules of the process with all controllers, in its own namespace.
	allRoleFile = "config/all/base/rbac/role.yaml"
	rightsFile  = "docs/rbac.md"
)

// hasController reports whether a module has a program of its controller.
func hasController(ws *workspace.Workspace, m workspace.Module) bool {
	_, err := os.Stat(ws.Path(m.Dir + "/cmd/" + m.Dir + "-controller"))
	return err == nil
}

// Generate writes the generated files and returns their names: the RBAC role of each selected module with a controller,
// from its +kubebuilder:rbac markers, and the page of all roles.
func Generate(ctx context.Context, ws *workspace.Workspace, modules ...string) ([]string, error) {
	selected, err := ws.Select(modules...)
	if err != nil {
		return nil, err
	}
	return repo{ws, selected}.generate(ctx, ws.Root)
}

// generate writes below a folder.
func (r repo) generate(ctx context.Context, root string) (names []string, err error) {
	for _, m := range r.modules {
		if !hasController(r.Workspace, m) {
			continue
		}
		name := m.Dir + "/" + roleFile
		folder := filepath.Dir(filepath.Join(root, name))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return names, err
		}
		if err := r.run(ctx, m.Dir, r.Path("tools/run"), "controller-gen", "rbac:roleName="+m.Name()+"-controller", "paths=./controller/...", "output:rbac:dir="+folder); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	text, err := r.rights()
	if err != nil {
		return names, err
	}
	file := filepath.Join(root, rightsFile)
	return append(names, rightsFile), errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
}

// checkGenerated generates into a temporary folder and compares, so that it neither changes the tree nor needs a clean
// one.
func checkGenerated(ctx context.Context, r repo) (err error) {
	scratch, err := os.MkdirTemp("", "sno-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	names, err := r.generate(ctx, scratch)
	if err != nil {
		return err
	}
	var faults findings
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(scratch, name))
		if err != nil {
			return fmt.Errorf("the generator wrote nothing: %w", err)
		}
		if got, err := os.ReadFile(r.Path(name)); err != nil || !bytes.Equal(got, want) {
			faults = append(faults, name+": is not what is generated; run make generate")
		}
	}
	return faults.orNil()
}

// readRoles reads the ClusterRoles and Roles of a file.
func (r repo) readRoles(name string) (roles []rbacv1.ClusterRole, err error) {
	text, err := os.ReadFile(r.Path(name))
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

const rightsIntroduction = `# Rights

The permissions of each program on a cluster. ` + "`make generate`" + ` writes this page from the roles, which in turn come from the
markers in each module's ` + "`controller/rbac.go`" + `. Tests run each controller with exactly its roles and policies.

- *Where* is a namespace; "cluster" means all namespaces and cluster-scoped objects.
- ` + "`fleet-controller`" + ` runs on a hub; [fleet.md](fleet.md#trust) says what the rights of its ManifestWorks on a cluster are for.
- *Named* limits a rule to objects. A role cannot limit ` + "`create`" + ` to a name, nor a patch to a field.
- **Fields** of objects of others, annotations and conditions among them, are limited by a ValidatingAdmissionPolicy of the account for each
  resource that it patches: ` + "`config/admission/policies.yaml`" + ` of each module, generated from the fields that the module patches. Every overlay
  has them. Kubernetes before 1.30 and OpenShift before 4.17 do not serve the kind: there only the program limits itself, see
  [config](../config/README.md) and [ARCHITECTURE.md](../ARCHITECTURE.md#who-owns-a-field). What a module creates itself is not limited.
- ` + "`tokenreviews` and `subjectaccessreviews`" + ` authenticate and authorize clients of the metrics.
- [config/all](../config/all) and [config/current](../config/current) bind the roles of the controllers that they run to one account,
  without those for a Lease of their own; it has one Lease, ` + "`kubectl-sno.sno.solonode.github.io`" + `.
`

// rights returns the page of all roles.
func (r repo) rights() (string, error) {
	var pages [][2]string // title and file
	for _, m := range r.Modules {
		if hasController(r.Workspace, m) {
			pages = append(pages, [2]string{m.Name() + "-controller", m.Dir + "/" + roleFile})
		}
	}
	pages = append(pages, [2]string{"approver-controller --mode=off, in addition", "approver/config/off/role.yaml"},
		[2]string{"approve, the outside tool", "approver/config/approve/role.yaml"},
		[2]string{"ManifestWorks of a fleet, on a cluster with all modules", "fleet/config/executor/rights.yaml"},
		[2]string{"kubectl-sno run, in addition to the roles of the controllers", allRoleFile})
	var text strings.Builder
	text.WriteString(rightsIntroduction)
	for _, page := range pages {
		roles, err := r.readRoles(page[1])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n## %s\n\n| where | what | named | reads | writes |\n|---|---|---|---|---|\n", page[0])
		for _, role := range roles {
			for _, rule := range role.Rules {
				fmt.Fprintf(&text, "| %s | %s |\n", cmp.Or(role.Namespace, "cluster"), strings.Join(cells(rule), " | "))
			}
		}
	}
	return text.String(), nil
}

// cells has resources as in kubectl: deployments.apps, and nodes without a group.
func cells(rule rbacv1.PolicyRule) []string {
	what := rule.NonResourceURLs
	for _, group := range rule.APIGroups {
		for _, name := range rule.Resources {
			if group != "" {
				resource, sub, hasSub := strings.Cut(name, "/")
				if name = resource + "." + group; hasSub {
					name += "/" + sub
				}
			}
			what = append(what, name)
		}
	}
	isRead := func(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }
	writes := slices.DeleteFunc(slices.Clone(rule.Verbs), isRead)
	reads := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return !isRead(verb) })
	quoted := func(names []string) string {
		if len(names) == 0 {
			return ""
		}
		return "`" + strings.Join(names, "`<br>`") + "`"
	}
	return []string{quoted(what), quoted(rule.ResourceNames), strings.Join(reads, ", "), strings.Join(writes, ", ")}
}
