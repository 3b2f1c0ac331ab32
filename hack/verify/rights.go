// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

const rightsFile = "docs/rbac.md"

const rightsIntroduction = `# Rights

The permissions of each program on a cluster. ` + "`make generate`" + ` writes this page from the roles, which in turn come from the
markers in each module's ` + "`controller/rbac.go`" + `. Tests run each controller with exactly its roles.

- *Where* is a namespace; "cluster" means all namespaces and cluster-scoped objects.
- *Named* limits a rule to objects. Kubernetes cannot limit ` + "`create`" + ` to a name, nor a patch to a field: the programs do, see
  [ARCHITECTURE.md](../ARCHITECTURE.md).
- ` + "`tokenreviews` and `subjectaccessreviews`" + ` authenticate and authorize clients of the metrics.
- [config/all](../config/all) binds all roles of the controllers to one account, without those for a Lease of their own; it has one Lease,
  ` + "`kubectl-sno.sno.solonode.github.io`" + `.
`

var handWritten = []struct{ title, file string }{
	{"approve, the outside tool", "approver/config/approve/role.yaml"},
	{"kubectl-sno run, in addition to the roles of the controllers", allRoleFile},
}

type role struct {
	Metadata struct{ Name, Namespace string }
	Rules    []struct {
		APIGroups       []string `json:"apiGroups"`
		Resources       []string `json:"resources"`
		ResourceNames   []string `json:"resourceNames"`
		NonResourceURLs []string `json:"nonResourceURLs"`
		Verbs           []string `json:"verbs"`
	}
}

func rights(ws *workspace.Workspace) (string, error) {
	text := strings.Builder{}
	text.WriteString(rightsIntroduction)
	for _, m := range ws.Modules {
		if !hasController(ws, m) {
			continue
		}
		if err := rightsTable(&text, ws, m.Name()+"-controller", m.Dir+"/"+rbacDir+"/role.yaml"); err != nil {
			return "", err
		}
	}
	for _, other := range handWritten {
		if err := rightsTable(&text, ws, other.title, other.file); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

func rightsTable(text *strings.Builder, ws *workspace.Workspace, title, file string) error {
	data, err := os.ReadFile(ws.Path(file))
	if err != nil {
		return fmt.Errorf("reading rights: %w", err)
	}
	fmt.Fprintf(text, "\n## %s\n\n| where | what | named | reads | writes |\n|---|---|---|---|---|\n", title)
	for _, document := range strings.Split("\n"+string(data), "\n---\n") {
		var r role
		if err := yaml.Unmarshal([]byte(document), &r); err != nil {
			return fmt.Errorf("reading rights: %s: %w", file, err)
		}
		where := r.Metadata.Namespace
		if where == "" {
			where = "cluster"
		}
		for _, rule := range r.Rules {
			reads, writes := split(rule.Verbs)
			fmt.Fprintf(text, "| %s | %s | %s | %s | %s |\n", where,
				strings.Join(append(resources(rule.APIGroups, rule.Resources), quoted(rule.NonResourceURLs)...), "<br>"),
				strings.Join(quoted(rule.ResourceNames), "<br>"), strings.Join(reads, ", "), strings.Join(writes, ", "))
		}
	}
	return nil
}

// resources returns names as in kubectl: deployments.apps, and nodes without a group.
func resources(groups, names []string) []string {
	var all []string
	for _, group := range groups {
		for _, name := range names {
			resource, sub, _ := strings.Cut(name, "/")
			if group != "" {
				resource += "." + group
			}
			if sub != "" {
				resource += "/" + sub
			}
			all = append(all, "`"+resource+"`")
		}
	}
	return all
}

func quoted(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, "`"+name+"`")
	}
	return all
}

func split(verbs []string) (reads, writes []string) {
	for _, verb := range verbs {
		if slices.Contains([]string{"get", "list", "watch"}, verb) {
			reads = append(reads, verb)
		} else {
			writes = append(writes, verb)
		}
	}
	return reads, writes
}
