// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/manifests"
	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/machineconfig"
)

var (
	// ErrInvalid is returned for a configuration that nothing can be rendered from.
	ErrInvalid = errors.New("invalid configuration")
	// ErrEdited is returned for a configuration whose name does not fit its content.
	ErrEdited = errors.New("edited configuration")
	// ErrReference is returned for an add-on that refers to no configuration, or to several.
	ErrReference = errors.New("not exactly one configuration")
)

// Names of the customizedVariables.
const (
	VariableModules     = "Modules"     // comma-separated
	VariableImage       = "Image"       // of the controllers; {module} is replaced by the name of the module
	VariableTool        = "Tool"        // the image of kubectl-sno, which releases the fields
	VariableManifests   = "Manifests"   // agent.Hash of the manager that installs them
	VariableDryRun      = "DryRun"      // true or false, the default
	VariableDrainPolicy = "DrainPolicy" // --drain-policy of machineconfig
	VariablePlacement   = "Placement"   // --placement of ingress
)

var variables = []string{VariableModules, VariableImage, VariableTool, VariableManifests, VariableDryRun, VariableDrainPolicy, VariablePlacement}

// Configuration is what runs on a spoke.
type Configuration struct {
	// Modules are sorted and distinct. Each has a Deployment of its own.
	Modules []string
	Image   string
	Tool    string
	// Manifests names what is rendered besides.
	Manifests string
	// DryRun deploys no controllers.
	DryRun      bool
	DrainPolicy machineconfig.DrainPolicy
	Placement   ingress.PlacementSource
}

// Validate returns an ErrInvalid, which names the variable and what it may be, or nil.
func (c Configuration) Validate() error {
	invalid := func(variable, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, variable, fmt.Sprintf(format, args...))
	}
	if len(c.Modules) == 0 {
		return invalid(VariableModules, "no module; name some of %s", strings.Join(feedback.Names(), ", "))
	}
	for i, name := range c.Modules {
		switch {
		case !slices.Contains(feedback.Names(), name):
			return invalid(VariableModules, "unknown module %q; there are %s", name, strings.Join(feedback.Names(), ", "))
		case slices.Contains(c.Modules[:i], name):
			return invalid(VariableModules, "%q is named twice", name)
		}
	}
	switch {
	case !isImage(c.Image):
		return invalid(VariableImage, "%q is no image; name one with its tag or digest, such as registry.example.com/%s-controller:v1", c.Image, manifests.Placeholder)
	case !isImage(c.Tool):
		return invalid(VariableTool, "%q is no image; name that of kubectl-sno with its tag or digest", c.Tool)
	case len(c.Modules) > 1 && !strings.Contains(c.Image, manifests.Placeholder):
		return invalid(VariableImage, "%q is one image for %d modules; use %s for the name of the module", c.Image, len(c.Modules), manifests.Placeholder)
	}
	if !slices.Contains([]machineconfig.DrainPolicy{machineconfig.DrainNever, machineconfig.DrainWorkers}, c.DrainPolicy) {
		return invalid(VariableDrainPolicy, "unknown policy %q; want %q or %q", c.DrainPolicy, machineconfig.DrainNever, machineconfig.DrainWorkers)
	}
	if _, err := ingress.ParsePlacementSource(string(c.Placement)); err != nil {
		return invalid(VariablePlacement, "unknown policy %q; want %q or %q", c.Placement, ingress.PlacementFromTopology, ingress.PlacementFromDefaultPlacement)
	}
	return nil
}

func isImage(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\n") }

// Parse reads a configuration. The error is an ErrInvalid or ErrEdited.
func Parse(config *addonv1alpha1.AddOnDeploymentConfig) (Configuration, error) {
	c, err := parse(config.Spec)
	if err != nil {
		return Configuration{}, fmt.Errorf("AddOnDeploymentConfig %s/%s: %w", config.Namespace, config.Name, err)
	}
	if !strings.HasSuffix(config.Name, "-"+c.Hash()) {
		return Configuration{}, fmt.Errorf("AddOnDeploymentConfig %s/%s: %w: its name must end in -%s, the hash of its content; "+
			"create another one instead of editing it, which would reach every cluster at once", config.Namespace, config.Name, ErrEdited, c.Hash())
	}
	return c, nil
}

func parse(spec addonv1alpha1.AddOnDeploymentConfigSpec) (Configuration, error) {
	if spec.NodePlacement != nil || len(spec.Registries) > 0 || len(spec.ResourceRequirements) > 0 ||
		spec.ProxyConfig.HTTPProxy+spec.ProxyConfig.HTTPSProxy != "" {
		return Configuration{}, fmt.Errorf("%w: only customizedVariables have an effect; remove the other fields of spec", ErrInvalid)
	}
	values := map[string]string{
		VariableDryRun: "false", VariableDrainPolicy: string(machineconfig.DrainNever), VariablePlacement: string(ingress.PlacementFromTopology),
	}
	for _, v := range spec.CustomizedVariables {
		if !slices.Contains(variables, v.Name) {
			return Configuration{}, fmt.Errorf("%w: unknown variable %q; there are %s", ErrInvalid, v.Name, strings.Join(variables, ", "))
		}
		values[v.Name] = v.Value
	}
	dryRun, err := strconv.ParseBool(values[VariableDryRun])
	if err != nil {
		return Configuration{}, fmt.Errorf("%w: %s: %q is neither true nor false", ErrInvalid, VariableDryRun, values[VariableDryRun])
	}
	modules := strings.FieldsFunc(values[VariableModules], func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(modules)
	c := Configuration{
		Modules: modules, Image: values[VariableImage], Tool: values[VariableTool], Manifests: values[VariableManifests], DryRun: dryRun,
		DrainPolicy: machineconfig.DrainPolicy(values[VariableDrainPolicy]), Placement: ingress.PlacementSource(values[VariablePlacement]),
	}
	return c, c.Validate()
}

// Object returns the AddOnDeploymentConfig, whose name is the prefix and the hash.
func (c Configuration) Object(namespace, prefix string) *addonv1alpha1.AddOnDeploymentConfig {
	return &addonv1alpha1.AddOnDeploymentConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnDeploymentConfig"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefix + "-" + c.Hash()},
		Spec:       addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: c.customized()},
	}
}

func (c Configuration) customized() []addonv1alpha1.CustomizedVariable {
	return []addonv1alpha1.CustomizedVariable{
		{Name: VariableModules, Value: strings.Join(slices.Sorted(slices.Values(c.Modules)), ",")},
		{Name: VariableImage, Value: c.Image},
		{Name: VariableTool, Value: c.Tool},
		{Name: VariableManifests, Value: c.Manifests},
		{Name: VariableDryRun, Value: strconv.FormatBool(c.DryRun)},
		{Name: VariableDrainPolicy, Value: string(c.DrainPolicy)},
		{Name: VariablePlacement, Value: string(c.Placement)},
	}
}

// Hash returns ten hexadecimal digits that differ for different configurations. Defaults that are written out, and the
// order of variables and modules, make no difference.
func (c Configuration) Hash() string {
	sum := sha256.New()
	for _, v := range c.customized() {
		fmt.Fprintf(sum, "%s=%q\n", v.Name, v.Value)
	}
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

// Args returns the arguments that the controller of a module gets in addition to those of its manifests.
func (c Configuration) Args(module string) []string {
	switch module {
	case machineconfig.Name:
		return []string{"--drain-policy=" + string(c.DrainPolicy)}
	case ingress.Name:
		return []string{"--placement=" + string(c.Placement)}
	}
	return nil
}

// ImageOf returns the image of a module's controller.
func (c Configuration) ImageOf(module string) string {
	return manifests.ImageOf(module, c.Image)
}

// Reference returns the configuration that an add-on's cluster has now: in a rollout its turn may not have come, so it
// is not that of the ClusterManagementAddOn. The error is an ErrReference.
func Reference(addon *addonv1alpha1.ManagedClusterAddOn) (addonv1alpha1.ConfigReferent, error) {
	var found []addonv1alpha1.ConfigReferent
	for _, ref := range addon.Status.ConfigReferences {
		if ref.Group == addonv1alpha1.GroupName && ref.Resource == "addondeploymentconfigs" && ref.DesiredConfig != nil {
			found = append(found, ref.DesiredConfig.ConfigReferent)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Namespace+"/"+f.Name)
	}
	if len(names) == 0 {
		return addonv1alpha1.ConfigReferent{}, fmt.Errorf("%w: cluster %s has none; name one for its placement in the ClusterManagementAddOn %s",
			ErrReference, addon.Namespace, addon.Name)
	}
	return addonv1alpha1.ConfigReferent{}, fmt.Errorf("%w: cluster %s has %s; leave one in the ClusterManagementAddOn %s",
		ErrReference, addon.Namespace, strings.Join(names, " and "), addon.Name)
}
