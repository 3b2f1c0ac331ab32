// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func rendered(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/rendered.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func image(name string) string {
	return "registry.example.com/sno/" + name + "@sha256:" + strings.Repeat("a", 64)
}

func options(version string) Options {
	return Options{
		Version: version, Image: image("kubectl-sno"), BundleImage: image("bundle"), Architecture: "amd64",
		Created: time.Date(2026, 11, 27, 1, 2, 3, 0, time.FixedZone("", 3600)),
	}
}

func parse(t *testing.T, text string) *Manifests {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func files(t *testing.T, o Options) map[string][]byte {
	t.Helper()
	written, err := Files(parse(t, rendered(t)), o)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// check writes the files and checks them.
func check(t *testing.T, written map[string][]byte) []string {
	t.Helper()
	folder := t.TempDir()
	if err := Write(folder, written); err != nil {
		t.Fatal(err)
	}
	faults, err := Check(folder)
	if err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}

func TestFiles(t *testing.T) {
	written := files(t, options("v0.1.0"))
	if faults := check(t, written); len(faults) > 0 {
		t.Errorf("faults: %s", strings.Join(faults, "\n"))
	}
	for range 5 {
		if diff := cmp.Diff(written, files(t, options("v0.1.0"))); diff != "" {
			t.Fatalf("not reproducible (-first +other):\n%s", diff)
		}
	}
	csv := string(written[csvFile])
	for _, part := range []string{
		"createdAt: \"2026-11-27T00:02:03Z\"\n", "image: " + image("kubectl-sno") + "\n", "operatorframework.io/arch.amd64: supported\n",
		`"labels":{"pod-security.kubernetes.io/enforce":"restricted"},"name":"sno-system"}`, "  - supported: true\n    type: AllNamespaces\n",
	} {
		if !strings.Contains(csv, part) {
			t.Errorf("the ClusterServiceVersion lacks %q:\n%s", part, csv)
		}
	}
	if strings.Contains(csv, "ko://") || strings.Contains(csv, "null") {
		t.Errorf("the ClusterServiceVersion has an image of ko or a null:\n%s", csv)
	}

	// OLM gets the Deployment of config/all, and its Services as they are but for the namespace.
	m := parse(t, rendered(t))
	var read v1alpha1.ClusterServiceVersion
	if err := yaml.Unmarshal(written[csvFile], &read); err != nil {
		t.Fatal(err)
	}
	deployment := read.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	deployment.Template.Spec.Containers[0].Image = koImage
	if diff := cmp.Diff(m.Deployment.Spec, deployment, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Deployment (-config/all +bundle):\n%s", diff)
	}
	rights := read.Spec.InstallStrategy.StrategySpec
	for _, of := range []struct {
		want []rbacv1.PolicyRule
		got  []v1alpha1.StrategyDeploymentPermissions
	}{{m.Operator, rights.Permissions}, {m.Cluster, rights.ClusterPermissions}} {
		want := []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: m.Account, Rules: of.want}}
		if diff := cmp.Diff(want, of.got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("rights (-config/all +bundle):\n%s", diff)
		}
	}
	if got := string(written["bundle/manifests/sno-controllers-metrics.service.yaml"]); !strings.Contains(got, "port: 8443") || strings.Contains(got, "namespace") {
		t.Errorf("the Service of the metrics:\n%s", got)
	}

	o := options("v0.1.0")
	o.BundleImage = ""
	without := files(t, o)
	if _, has := without[catalogFile]; has || len(check(t, without)) > 0 {
		t.Errorf("without the image of the bundle: %v, %v", without[catalogFile], check(t, without))
	}
}

func TestFaults(t *testing.T) {
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	for name, test := range map[string]struct {
		file   string
		change func(string) string
		want   string
	}{
		"bad version":      {csvFile, replace("version: 0.1.0\n", "version: one\n"), "reading the bundle"},
		"bad name":         {csvFile, replace("name: sno.v0.1.0\n", "name: sno-latest\n"), "versioning convention"},
		"bad kube version": {csvFile, replace("minKubeVersion: 1.22.0", "minKubeVersion: \"1\""), "MinKubeVersion"},
		"no provider":      {csvFile, replace("  provider:\n    name: sno\n", "  provider:\n"), "Provider.Name"},
		"bad icon":         {csvFile, replace("mediatype: image/svg+xml", "mediatype: text/plain"), "mediatype"},
		"bad category":     {csvFile, replace("categories: OpenShift Optional", "categories: Other"), "categories"},
		"bad capability":   {csvFile, replace("capabilities: Basic Install", "capabilities: Magic"), "capabilities"},
		"no install mode":  {csvFile, replace("supported: true\n", "supported: false\n"), "none of InstallModeTypes are supported"},
		"image by tag":     {csvFile, replace("relatedImages:\n  - image: "+image("kubectl-sno"), "relatedImages:\n  - image: a/b:c"), "has no digest"},
		"unrelated image":  {csvFile, replace("relatedImages:\n  - image: "+image("kubectl-sno"), "relatedImages:\n  - image: "+image("x")), "not among the related"},
		"bundle by tag":    {catalogFile, replace("image: "+image("bundle"), "image: a/b:c"), "has no digest"},
		"no bundle":        {catalogFile, replace("schema: olm.bundle", "schema: olm.other"), "entry sno.v0.1.0 has no bundle"},
		"other version":    {catalogFile, replace("version: 0.1.0", "version: 0.1.1"), "it is of package sno, version 0.1.1"},
		"default channel":  {catalogFile, replace("defaultChannel: candidate", "defaultChannel: stable"), "default channel stable"},
		"skips itself":     {catalogFile, replace("skipRange: <0.1.0", "skipRange: <=0.1.0"), "must be earlier versions"},
		"replaces itself":  {catalogFile, replace("- name: sno.v0.1.0\n", "- name: sno.v0.1.0\n  replaces: sno.v0.1.0\n"), "which is no earlier version"},
		"no package":       {catalogFile, replace("schema: olm.package", "schema: olm.channel"), "0 packages and 2 channels"},
		"unknown field":    {catalogFile, replace("schema: olm.package", "schema: olm.package\nother: x"), "unknown field"},
	} {
		written := files(t, options("v0.1.0"))
		changed := test.change(string(written[test.file]))
		if changed == string(written[test.file]) {
			t.Errorf("%s: changes nothing", name)
		}
		written[test.file] = []byte(changed)
		if faults := strings.Join(check(t, written), "\n"); !strings.Contains(faults, test.want) {
			t.Errorf("%s: faults %q, want %q", name, faults, test.want)
		}
	}
}

func TestUpgrade(t *testing.T) {
	first := files(t, options("v0.1.0"))
	o := options("v0.2.0")
	o.Previous = first[catalogFile]
	second := files(t, o)
	if faults := check(t, second); len(faults) > 0 {
		t.Errorf("faults: %s", strings.Join(faults, "\n"))
	}
	catalog, err := readCatalog(second[catalogFile])
	if err != nil {
		t.Fatal(err)
	}
	want := []channelEntry{{Name: "sno.v0.1.0", SkipRange: "<0.1.0"}, {Name: "sno.v0.2.0", Replaces: "sno.v0.1.0", SkipRange: "<0.2.0"}}
	if diff := cmp.Diff(want, catalog[1].Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if len(catalog) != 4 || catalog[2].Name != "sno.v0.1.0" || catalog[3].Name != "sno.v0.2.0" {
		t.Errorf("the catalogue is %+v", catalog)
	}

	// The same version, or an earlier one, is no upgrade.
	for _, version := range []string{"v0.1.0", "v0.0.9"} {
		o := options(version)
		o.Previous = first[catalogFile]
		if _, err := Files(parse(t, rendered(t)), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s after v0.1.0: %v, want %v", version, err, ErrOptions)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"version without v": func(o *Options) { o.Version = "0.1.0" },
		"no version":        func(o *Options) { o.Version = "v1" },
		"image by tag":      func(o *Options) { o.Image = "registry.example.com/sno/kubectl-sno:v0.1.0" },
		"no image":          func(o *Options) { o.Image = "" },
		"bundle by tag":     func(o *Options) { o.BundleImage = "registry.example.com/sno/bundle:v0.1.0" },
		"no architecture":   func(o *Options) { o.Architecture = "" },
		"no time":           func(o *Options) { o.Created = time.Time{} },
	} {
		o := options("v0.1.0")
		change(&o)
		if _, err := Files(parse(t, rendered(t)), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v, want %v", name, err, ErrOptions)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	text := rendered(t)
	for name, changed := range map[string]string{
		"unsupported kind": text + "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n",
		"two accounts":     text + "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: x\n",
		"two Deployments":  text + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: x\n",
		"no Namespace":     strings.Replace(text, "kind: Namespace", "kind: Service", 1),
	} {
		if _, err := Parse(changed); !errors.Is(err, ErrManifests) {
			t.Errorf("%s: %v, want %v", name, err, ErrManifests)
		}
	}
	if _, err := Parse(strings.Replace(text, "replicas: 1", "replicaz: 1", 1)); err == nil || !strings.Contains(err.Error(), "replicaz") {
		t.Errorf("an unknown field: %v", err)
	}
}

// The tests of other modules have a copy, so that they do not depend on operator-framework/api.
func TestCopiedCRD(t *testing.T) {
	text, err := os.ReadFile("../../cli/operatorcondition/testdata/operators.coreos.com_operatorconditions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var copied apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &copied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*crds.OperatorCondition(), copied); diff != "" {
		t.Errorf("copy it again (-want +got):\n%s", diff)
	}
}
