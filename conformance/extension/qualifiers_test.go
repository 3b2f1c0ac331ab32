// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
)

// origin evaluates CEL, the program Go. The results must be equal.

func evaluate(t *testing.T, expression string, variables map[string]any) bool {
	t.Helper()
	env, err := cel.NewEnv(
		cel.Variable("name", cel.StringType), cel.Variable("source", cel.StringType), cel.Variable("labels", cel.ListType(cel.StringType)),
		cel.Variable("topology", cel.StringType),
	)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value.Value() == true
}

func namesOf(checks []catalogue.Check) (names []string) {
	for _, check := range checks {
		names = append(names, check.Name())
	}
	return names
}

func TestQualifiersAreCEL(t *testing.T) {
	p := Program{Catalogue: someChecks()}
	for _, c := range p.suites() {
		checks, err := p.inSuite(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, s := range specs(p.Catalogue) {
			variables := map[string]any{"name": s.Name, "source": s.Source, "labels": p.Catalogue[i].Labels()}
			if evaluate(t, c.Qualifiers[0], variables) {
				got = append(got, s.Name)
			}
			if variables["source"] = "openshift:payload:other"; evaluate(t, c.Qualifiers[0], variables) {
				t.Errorf("suite %s selects a test of another extension", c.Name)
			}
		}
		if diff := cmp.Diff(namesOf(checks), got); diff != "" || len(c.Qualifiers) != 1 {
			t.Errorf("suite %s: by its qualifier (-program +CEL):\n%s", c.Name, diff)
		}
	}
	p.Catalogue = slices.Delete(p.Catalogue, 4, 5)
	if _, err := p.inSuite("sno/disruptive"); err == nil {
		t.Error("a suite without checks is accepted")
	}
}

func TestEnvironmentSelectorsAreCEL(t *testing.T) {
	for _, topology := range []string{"SingleReplica", "HighlyAvailable", "DualReplica", "HighlyAvailableArbiter", "External", "Sideways"} {
		var got []string
		for _, s := range specs(someChecks()) {
			if include := s.EnvironmentSelector.Include; include == "" || evaluate(t, include, map[string]any{"topology": topology}) {
				got = append(got, s.Name)
			}
		}
		if diff := cmp.Diff(namesOf(among(someChecks(), topology)), got); diff != "" {
			t.Errorf("%s (-program +CEL):\n%s", topology, diff)
		}
	}
}
