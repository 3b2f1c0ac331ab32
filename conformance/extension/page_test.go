// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/catalogue"
)

const pageHead = `# Conformance

<!-- Generated: ` + "`go test ./extension -update`" + ` in conformance updates it. -->

What a cluster must do on a single node and must keep doing on three. Every check comes from a requirement of
[requirements.md](requirements.md). An id is never reused for another behaviour.

- **Level**: a conformant cluster passes all core checks and should pass the extended ones.
- **Tier**: static checks read; scheduled checks run copies of the cluster's Deployments in their own namespaces; disruptive checks disturb the cluster.
- **Controls** are changes with which a check must fail (negative) or pass (positive). ` + "`sno-tests explain ID`" + ` prints those of a check.
  - **state**: a change of a copy of the objects that were read, in every run. The check evaluates the changed objects.
  - **record**: a change of a copy of the recorded result, in every run. It proves the comparison, not that the check detects the fault.
  - **cluster**: a fault of an embedded cluster, in ` + "`make conformance-controls`" + `. Every check that has a record has such a control.

  A control with the wrong result makes the check inconclusive.

`

// page returns docs/conformance.md.
func page(checks []catalogue.Check) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "| module | checks | core | %s | %s | %s |\n|---|---|---|---|---|---|\n", catalogue.Static, catalogue.Scheduled, catalogue.Disruptive)
	for _, module := range catalogue.Modules(checks) {
		b.WriteString(countRow(checks, module))
	}
	for _, module := range catalogue.Modules(checks) {
		fmt.Fprintf(&b, "\n## %s\n\n", module)
		b.WriteString("| id | what must hold | level, tier | controls | requirement | where |\n|---|---|---|---|---|---|\n")
		for _, check := range checks {
			if check.Module == module {
				b.WriteString(checkRow(check))
			}
		}
	}
	return b.Bytes()
}

func countRow(checks []catalogue.Check, module string) string {
	count := func(is func(catalogue.Check) bool) int {
		return len(slices.DeleteFunc(slices.Clone(checks), func(check catalogue.Check) bool { return check.Module != module || !is(check) }))
	}
	tier := func(tier catalogue.Tier) int {
		return count(func(check catalogue.Check) bool { return check.Tier == tier })
	}
	return fmt.Sprintf("| [%s](#%s) | %d | %d | %d | %d | %d |\n", module, strings.ToLower(module),
		count(func(catalogue.Check) bool { return true }), count(func(check catalogue.Check) bool { return check.Level == catalogue.Core }),
		tier(catalogue.Static), tier(catalogue.Scheduled), tier(catalogue.Disruptive))
}

func checkRow(check catalogue.Check) string {
	where := orAll(check.Topologies)
	if len(check.Needs) > 0 {
		where += "; needs " + strings.Join(check.Needs, ", ")
	}
	cells := []string{check.ID, check.Title, string(check.Level) + ", " + string(check.Tier), kinds(check), "", where}
	for i := range cells {
		cells[i] = inCell(cells[i])
	}
	cells[0] = fmt.Sprintf("<a id=%q></a>%s", strings.ToLower(check.ID), cells[0])
	cells[4] = fmt.Sprintf("[%s](requirements.md#%s)", check.Requirement.ID, strings.ToLower(check.Requirement.ID))
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func inCell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

// kinds returns the kinds of a check's controls.
func kinds(check catalogue.Check) string {
	var all []string
	for _, kind := range catalogue.ControlKinds() {
		if slices.ContainsFunc(check.Controls, func(control catalogue.Control) bool { return check.KindOf(control) == kind }) {
			all = append(all, string(kind))
		}
	}
	return strings.Join(all, ", ")
}
