// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra/doc"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	approverdecision "github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/cli"
	consoledecision "github.com/solonode/sno/console/decision"
	etcdguarddecision "github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

// generated compares the files of a folder, or writes them with -update.
func generated(t *testing.T, folder, ending string, want map[string]string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*" + ending)
	if flag.Lookup("update").Value.String() == "true" {
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		for name, text := range want {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name+ending), []byte(text), 0o644))
		}
		files, _ = filepath.Glob(folder + "/*" + ending)
	}
	got := map[string]string{}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		got[strings.TrimSuffix(filepath.Base(file), ending)] = string(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("%s (-generated +there); run with -update:\n%s", folder, diff)
	}
}

func TestReference(t *testing.T) {
	root := cli.New(genericiooptions.NewTestIOStreamsDiscard())
	root.DisableAutoGenTag = true
	want := map[string]string{}
	fleet, _, err := root.Find([]string{"fleet"}) // its commands refer to it
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range append(runnable(root), root, fleet) {
		var page bytes.Buffer
		if err := doc.GenMarkdown(command, &page); err != nil {
			t.Fatal(err)
		}
		want[strings.ReplaceAll(command.CommandPath(), " ", "_")] = page.String()
	}
	generated(t, "../docs/kubectl-sno", ".md", want)
}

var allModules = []string{"approver", "auth", "console", "etcdguard", "ingress", "machineconfig"}

// One account for all modules may write the entries of each of them.
func TestPolicies(t *testing.T) {
	entries := append([]configv1.ComponentOverride{approverdecision.Override(), consoledecision.Override()}, etcdguarddecision.Overrides()...)
	golden.File(t, "../config/all/base/admission/policies.yaml", admission.Policies("controllers", admission.Overrides(entries)))

	text, err := os.ReadFile("../fleet/manifests/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]string{} // the policy of a resource in a namespace; two would refuse what the other permits
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		if policy.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		namespaces := []string{""}
		for i, c := range policy.Spec.MatchConditions {
			switch {
			case i == 0 && !strings.HasSuffix(c.Expression, `:sno-controllers"`):
				t.Errorf("%s limits another account: %s", policy.Name, c.Expression)
			case i > 0:
				namespaces = regexp.MustCompile(`"[^"]+"`).FindAllString(c.Expression, -1)
			}
		}
		for _, namespace := range namespaces {
			limited := policy.Spec.MatchConstraints.ResourceRules[0].Resources[0] + " " + namespace
			if other, twice := limits[limited]; twice {
				t.Errorf("%s are limited by %s and %s", limited, other, policy.Name)
			}
			limits[limited] = policy.Name
		}
	}
	if len(limits) == 0 {
		t.Error("no resource is limited")
	}
}

func TestManifests(t *testing.T) {
	want := map[string]string{}
	for _, name := range append(slices.Clone(allModules), "all", "current") {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../config/"+name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		want[name] = string(text)
	}
	generated(t, "../fleet/manifests", ".yaml", want)
}
