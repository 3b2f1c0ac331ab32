// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

// validators are those of operator-framework/api that need no registry. MultipleArchitecturesValidator pulls images.
var validators = append(slices.Clone(validation.DefaultBundleValidators), validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator,
	validation.StandardCategoriesValidator, validation.ObjectValidator, validation.GoodPracticesValidator)

// expectedWarning is one of the validators: a rule has no version, so they cannot exclude those that Kubernetes 1.25
// removed. The controllers use events.k8s.io/v1 and policy/v1.
var expectedWarning = regexp.MustCompile(`: this bundle is using APIs which were deprecated and removed in v1\.25\. ` +
	`.* Migrate the API\(s\) for ((events|poddisruptionbudgets): \(\[("[^"]*" ?)+\]\),)+$`)

// Check returns what is wrong with written files: errors and unexpected warnings of the validators, and images that
// could change or that a mirror would not have.
func Check(folder string) ([]string, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(folder, "bundle"))
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	faults := validate(bundle, validators)
	faults = append(faults, imageFaults(bundle.CSV)...)
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(catalogFile)))
	if errors.Is(err, os.ErrNotExist) {
		return faults, nil
	}
	if err != nil {
		return nil, err
	}
	catalog, err := readCatalog(text)
	if err != nil {
		return nil, err
	}
	faults = append(faults, catalogFaults(catalog)...)
	if last := catalog[len(catalog)-1]; last.Name != bundle.CSV.Name {
		faults = append(faults, fmt.Sprintf("catalogue: the last bundle is %s, want %s", last.Name, bundle.CSV.Name))
	}
	return faults, nil
}

func validate(bundle *manifests.Bundle, validators validator.Validators) (faults []string) {
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, e := range result.Errors {
			faults = append(faults, "error: "+e.Error())
		}
		for _, w := range result.Warnings {
			if !expectedWarning.MatchString(strings.TrimSpace(w.Error())) {
				faults = append(faults, "unexpected warning: "+w.Error())
			}
		}
	}
	return faults
}

// imageFaults compares the images of the containers with the related ones, which mirrors of catalogues copy.
func imageFaults(csv *v1alpha1.ClusterServiceVersion) (faults []string) {
	related := map[string]bool{}
	for _, image := range csv.Spec.RelatedImages {
		related[image.Image] = true
		if !byDigest.MatchString(image.Image) {
			faults = append(faults, "related image "+image.Image+" has no digest")
		}
	}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if !related[container.Image] {
				faults = append(faults, "the image "+container.Image+" is not among the related images")
			}
		}
	}
	return faults
}

// catalogFaults checks a file-based catalogue by the rules of `opm validate` that apply to one package: one package
// with a default channel, one head of the channel, edges to earlier versions only, one bundle for each entry, images by
// digest, and the versions in the properties.
func catalogFaults(blobs []catalogBlob) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, "catalogue: "+fmt.Sprintf(format, args...)) }
	packages, channels, bundles := 0, []catalogBlob{}, map[string]semver.Version{}
	for _, blob := range blobs {
		switch blob.Schema {
		case "olm.package":
			if packages++; blob.Name != Package || blob.DefaultChannel != Channel {
				fault("package %s has the default channel %s", blob.Name, blob.DefaultChannel)
			}
		case "olm.channel":
			channels = append(channels, blob)
		case "olm.bundle":
			if _, has := bundles[blob.Name]; has {
				fault("two bundles %s", blob.Name)
			}
			parsed, err := versionOf(blob)
			if err != nil {
				fault("bundle %s: %v", blob.Name, err)
			}
			bundles[blob.Name] = parsed
			for _, image := range append([]v1alpha1.RelatedImage{{Image: blob.Image}}, blob.RelatedImages...) {
				if !byDigest.MatchString(image.Image) {
					fault("bundle %s: image %q has no digest", blob.Name, image.Image)
				}
			}
		default:
			fault("schema %q", blob.Schema)
		}
	}
	if packages != 1 || len(channels) != 1 {
		fault("%d packages and %d channels, want one of each", packages, len(channels))
		return faults
	}
	heads := map[string]bool{}
	for _, entry := range channels[0].Entries {
		if _, has := bundles[entry.Name]; !has || heads[entry.Name] {
			fault("entry %s has no bundle, or is there twice", entry.Name)
		}
		heads[entry.Name] = true
	}
	for _, entry := range channels[0].Entries {
		parsed := bundles[entry.Name]
		if entry.Replaces != "" {
			if replaced, has := bundles[entry.Replaces]; !has || !replaced.LT(parsed) {
				fault("entry %s replaces %s, which is no earlier version", entry.Name, entry.Replaces)
			}
			delete(heads, entry.Replaces)
		}
		if in, err := semver.ParseRange(entry.SkipRange); err != nil || in(parsed) {
			fault("entry %s has the skipRange %q, which must be earlier versions", entry.Name, entry.SkipRange)
		}
	}
	if len(heads) != 1 || len(channels[0].Entries) != len(bundles) {
		fault("channel %s has %d heads and %d entries for %d bundles", channels[0].Name, len(heads), len(channels[0].Entries), len(bundles))
	}
	return faults
}

func versionOf(blob catalogBlob) (semver.Version, error) {
	for _, property := range blob.Properties {
		if property.Type != "olm.package" {
			continue
		}
		var value struct{ PackageName, Version string }
		if err := json.Unmarshal(property.Value, &value); err != nil {
			return semver.Version{}, err
		}
		parsed, err := semver.Parse(value.Version)
		if err == nil && (value.PackageName != Package || blob.Name != name(parsed)) {
			err = fmt.Errorf("%w: it is of package %s, version %s", ErrOptions, value.PackageName, value.Version)
		}
		return parsed, err
	}
	return semver.Version{}, fmt.Errorf("%w: it lacks the property olm.package", ErrOptions)
}
