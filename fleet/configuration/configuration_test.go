// SPDX-License-Identifier: Apache-2.0

package configuration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/solonode/sno/fleet/configuration"
)

func object(name string, variables ...string) *addonv1alpha1.AddOnDeploymentConfig {
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	config.Namespace, config.Name = "open-cluster-management", name
	for _, v := range variables {
		key, value, _ := strings.Cut(v, "=")
		config.Spec.CustomizedVariables = append(config.Spec.CustomizedVariables, addonv1alpha1.CustomizedVariable{Name: key, Value: value})
	}
	return config
}

const (
	image = "Image=registry.example.com/{module}-controller:v1"
	tool  = "Tool=registry.example.com/kubectl-sno:v1"
)

func TestRoundTrip(t *testing.T) {
	for name, variables := range map[string][]string{
		"defaults": {"Modules=ingress", image, tool},
		"all":      {"Modules=ingress, auth,machineconfig", image, tool, "Manifests=0123456789", "DryRun=true", "DrainPolicy=workers", "Placement=defaultPlacement"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configuration.Parse(object("sno", variables...))
			if !errors.Is(err, configuration.ErrEdited) {
				t.Fatalf("a name without a hash: %v", err)
			}
			_, hash, _ := strings.Cut(err.Error(), "end in -")
			first, err := configuration.Parse(object("sno-"+hash[:10], variables...))
			if err != nil {
				t.Fatal(err)
			}
			again, err := configuration.Parse(first.Object("ns", "sno"))
			if diff := cmp.Diff(first, again); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// The hash differs for every field and not for the order of modules.
func TestHash(t *testing.T) {
	base := configuration.Configuration{Modules: []string{"auth", "ingress"}, Image: "a/{module}:v1", DrainPolicy: "never", Placement: "topology"}
	seen := map[string]string{base.Hash(): "base"}
	for name, change := range map[string]func(*configuration.Configuration){
		"modules":      func(c *configuration.Configuration) { c.Modules = []string{"auth"} },
		"image":        func(c *configuration.Configuration) { c.Image = "a/{module}:v2" },
		"tool":         func(c *configuration.Configuration) { c.Tool = "a/tool:v2" },
		"manifests":    func(c *configuration.Configuration) { c.Manifests = "0123456789" },
		"dry run":      func(c *configuration.Configuration) { c.DryRun = true },
		"drain policy": func(c *configuration.Configuration) { c.DrainPolicy = "workers" },
		"placement":    func(c *configuration.Configuration) { c.Placement = "defaultPlacement" },
	} {
		changed := base
		change(&changed)
		if other := seen[changed.Hash()]; other != "" {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[changed.Hash()] = name
	}
	swapped := base
	swapped.Modules = []string{"ingress", "auth"}
	if swapped.Hash() != base.Hash() {
		t.Error("the order of modules changes the hash")
	}
}

func TestInvalid(t *testing.T) {
	other := object("sno", "Modules=ingress", image, tool)
	other.Spec.NodePlacement = &addonv1alpha1.NodePlacement{}
	for name, c := range map[string]struct {
		config *addonv1alpha1.AddOnDeploymentConfig
		want   string
	}{
		"no module":         {object("sno", image, tool), "no module; name some of approver, auth"},
		"unknown module":    {object("sno", image, tool, "Modules=ingress,registry"), `unknown module "registry"; there are approver, auth`},
		"twice":             {object("sno", image, tool, "Modules=ingress,ingress"), `"ingress" is named twice`},
		"no image":          {object("sno", "Modules=ingress"), `"" is no image`},
		"no tool":           {object("sno", "Modules=ingress", "Tool=a b", image), `Tool: "a b" is no image`},
		"one image for two": {object("sno", "Modules=ingress,auth", "Image=a:v1", tool), "use {module} for the name"},
		"drain policy":      {object("sno", image, tool, "Modules=ingress", "DrainPolicy=always"), `unknown policy "always"; want "never" or "workers"`},
		"placement":         {object("sno", image, tool, "Modules=ingress", "Placement=infra"), `unknown policy "infra"; want "topology" or "defaultPlacement"`},
		"dry run":           {object("sno", image, tool, "Modules=ingress", "DryRun=maybe"), `"maybe" is neither true nor false`},
		"variable":          {object("sno", image, tool, "Module=ingress"), `unknown variable "Module"; there are Modules`},
		"other fields":      {other, "only customizedVariables have an effect"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configuration.Parse(c.config)
			if !errors.Is(err, configuration.ErrInvalid) || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "AddOnDeploymentConfig open-cluster-management/sno: ") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	c := configuration.Configuration{Image: "a/{module}:v1", DrainPolicy: "workers", Placement: "defaultPlacement"}
	got := fmt.Sprint(c.Args("ingress"), c.Args("machineconfig"), c.Args("auth"), c.ImageOf("auth"))
	if want := "[--placement=defaultPlacement] [--drain-policy=workers] []a/auth:v1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReference(t *testing.T) {
	addon := func(names ...string) *addonv1alpha1.ManagedClusterAddOn {
		a := &addonv1alpha1.ManagedClusterAddOn{}
		a.Namespace, a.Name = "east-1", "sno"
		a.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addontemplates"},
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{},
		}}
		for _, name := range names {
			ref := addonv1alpha1.ConfigReference{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
			}
			if name != "" { // without one the turn of the cluster has not come
				ref.DesiredConfig = &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name}}
			}
			a.Status.ConfigReferences = append(a.Status.ConfigReferences, ref)
		}
		return a
	}
	if got, err := configuration.Reference(addon("sno-1")); err != nil || got.Name != "sno-1" {
		t.Errorf("one configuration: %v, %v", got, err)
	}
	for want, a := range map[string]*addonv1alpha1.ManagedClusterAddOn{
		"cluster east-1 has ns/sno-1 and ns/sno-2;": addon("sno-1", "sno-2"),
		"cluster east-1 has none;":                  addon(""),
	} {
		if _, err := configuration.Reference(a); !errors.Is(err, configuration.ErrReference) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
