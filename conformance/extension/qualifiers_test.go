// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
)

// origin evaluates CEL, the program Go. The results must be equal.

func evaluate(t *testing.T, env *cel.Env, expression string, variables map[string]any) bool {
	t.Helper()
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

func TestQualifiersAreCEL(t *testing.T) {
	text, texts := cel.StringType, cel.ListType(cel.StringType)
	env, err := cel.NewEnv(
		cel.Variable("name", text), cel.Variable("source", text), cel.Variable("originalName", text),
		cel.Variable("labels", texts), cel.Variable("codeLocations", texts), cel.Variable("tags", cel.MapType(text, text)),
	)
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Catalogue: someChecks()}
	for _, c := range p.suites() {
		checks, err := p.inSuite(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, check := range checks {
			want = append(want, check.ID)
		}
		for i, s := range specs(p.Catalogue) {
			variables := map[string]any{
				"name": s.Name, "source": s.Source, "originalName": "", "labels": p.Catalogue[i].Labels(),
				"codeLocations": []string{}, "tags": map[string]string{},
			}
			for _, qualifier := range c.Qualifiers {
				if evaluate(t, env, qualifier, variables) {
					got = append(got, p.Catalogue[i].ID)
				}
				variables["source"] = "openshift:payload:other"
				if evaluate(t, env, qualifier, variables) {
					t.Errorf("suite %s selects a test of another extension", c.Name)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("suite %s: by its qualifier (-program +CEL):\n%s", c.Name, diff)
		}
	}
}

func TestEnvironmentSelectorsAreCEL(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("topology", cel.StringType))
	if err != nil {
		t.Fatal(err)
	}
	for _, topology := range []string{"SingleReplica", "HighlyAvailable", "DualReplica", "HighlyAvailableArbiter", "External", "Sideways"} {
		var want, got []string
		for _, check := range among(someChecks(), topology) {
			want = append(want, check.Name())
		}
		for _, s := range specs(someChecks()) {
			include := s.EnvironmentSelector.Include
			if include == "" || evaluate(t, env, include, map[string]any{"topology": topology}) {
				got = append(got, s.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-program +CEL):\n%s", topology, diff)
		}
	}
}

func TestSuiteWithoutChecks(t *testing.T) {
	p := Program{Catalogue: slices.Delete(someChecks(), 4, 5)}
	if _, err := p.inSuite("sno/disruptive"); err == nil {
		t.Error("a suite without checks is accepted")
	}
}
