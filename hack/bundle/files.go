// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// The files, relative to the folder that Files are written to.
const (
	csvFile     = "bundle/manifests/" + Package + ".clusterserviceversion.yaml"
	catalogFile = "catalog/" + Package + "/catalog.yaml"
)

// labels are those of the bundle's image, which annotations.yaml repeats.
var labels = map[string]string{
	"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
	"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
	"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
	"operators.operatorframework.io.bundle.package.v1":         Package,
	"operators.operatorframework.io.bundle.channels.v1":        Channel,
	"operators.operatorframework.io.bundle.channel.default.v1": Channel,
	"com.redhat.openshift.versions":                            openshiftVersions,
}

// Files returns the contents of all files by name, without a catalogue if the image of the bundle is not known. Equal
// arguments give equal bytes.
func Files(m *Manifests, o Options) (map[string][]byte, error) {
	csv, err := ClusterServiceVersion(m, o)
	if err != nil {
		return nil, err
	}
	dockerfile := strings.Builder{}
	dockerfile.WriteString("FROM scratch\n")
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&dockerfile, "LABEL %s=%s\n", label, labels[label])
	}
	dockerfile.WriteString("COPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n")
	files := map[string][]byte{"bundle.Dockerfile": []byte(dockerfile.String())}
	if o.BundleImage != "" {
		if files[catalogFile], err = catalog(csv, o); err != nil {
			return nil, err
		}
		files["catalog.Dockerfile"] = []byte("# Without a program: the CatalogSource needs spec.grpcPodConfig.extractContent.\nFROM scratch\n" +
			"LABEL operators.operatorframework.io.index.configs.v1=/configs\nCOPY catalog /configs/\n")
	}
	contents := map[string]any{
		csvFile:                            csv,
		"bundle/metadata/annotations.yaml": map[string]any{"annotations": labels},
		// It depends on no other operator: what it needs is nativeAPIs of the ClusterServiceVersion.
		"bundle/metadata/dependencies.yaml": map[string]any{"dependencies": []any{}},
	}
	for _, object := range m.Others {
		// OLM sets its own namespace.
		object = object.DeepCopy()
		object.SetNamespace("")
		contents[fmt.Sprintf("bundle/manifests/%s.%s.yaml", object.GetName(), strings.ToLower(object.GetKind()))] = object.Object
	}
	for name, content := range contents {
		if files[name], err = clean(content); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
	}
	return files, nil
}

// Write writes Files into a folder, in place of an earlier bundle and catalogue.
func Write(folder string, files map[string][]byte) error {
	for _, old := range []string{"bundle", "catalog"} {
		if err := os.RemoveAll(filepath.Join(folder, old)); err != nil {
			return err
		}
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// catalogBlob is an entry of a file-based catalogue.
type catalogBlob struct {
	Schema         string                  `json:"schema"`
	Name           string                  `json:"name"`
	Package        string                  `json:"package,omitempty"`
	DefaultChannel string                  `json:"defaultChannel,omitempty"`
	Description    string                  `json:"description,omitempty"`
	Icon           map[string]string       `json:"icon,omitempty"`
	Entries        []channelEntry          `json:"entries,omitempty"`
	Image          string                  `json:"image,omitempty"`
	Properties     []bundleProperty        `json:"properties,omitempty"`
	RelatedImages  []v1alpha1.RelatedImage `json:"relatedImages,omitempty"`
}

// channelEntry is a version in a channel, with the edges of upgrades to it.
type channelEntry struct {
	Name      string `json:"name"`
	Replaces  string `json:"replaces,omitempty"`
	SkipRange string `json:"skipRange,omitempty"`
}

// bundleProperty is a fact about a bundle that OLM resolves by.
type bundleProperty struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// catalog returns the catalogue of the previous release with the bundle added: it replaces the last one of the channel.
func catalog(csv *v1alpha1.ClusterServiceVersion, o Options) ([]byte, error) {
	image := o.BundleImage
	previous, err := readCatalog(o.Previous)
	if err != nil {
		return nil, err
	}
	channel := catalogBlob{Schema: "olm.channel", Package: Package, Name: Channel}
	var bundles []catalogBlob
	for _, blob := range previous {
		switch blob.Schema {
		case "olm.channel":
			channel.Entries = blob.Entries
		case "olm.bundle":
			bundles = append(bundles, blob)
		}
	}
	entry := channelEntry{Name: csv.Name, SkipRange: csv.Annotations["olm.skipRange"]}
	if n := len(channel.Entries); n > 0 {
		entry.Replaces = channel.Entries[n-1].Name
	}
	channel.Entries = append(channel.Entries, entry)
	metadata := map[string]any{
		"annotations": csv.Annotations, "displayName": csv.Spec.DisplayName, "description": csv.Spec.Description, "keywords": csv.Spec.Keywords,
		"installModes": csv.Spec.InstallModes, "provider": csv.Spec.Provider, "maintainers": csv.Spec.Maintainers, "links": csv.Spec.Links,
		"labels": csv.Labels, "maturity": csv.Spec.Maturity, "minKubeVersion": csv.Spec.MinKubeVersion, "nativeAPIs": csv.Spec.NativeAPIs,
		"apiServiceDefinitions": map[string]any{}, "crdDescriptions": map[string]any{},
	}
	bundle := catalogBlob{
		Schema: "olm.bundle", Package: Package, Name: csv.Name, Image: image,
		RelatedImages: append([]v1alpha1.RelatedImage{{Name: "", Image: image}}, csv.Spec.RelatedImages...),
	}
	for _, property := range []struct {
		kind  string
		value any
	}{
		{"olm.package", map[string]string{"packageName": Package, "version": csv.Spec.Version.String()}},
		{"olm.csv.metadata", metadata},
	} {
		value, err := json.Marshal(property.value)
		if err != nil {
			return nil, err
		}
		bundle.Properties = append(bundle.Properties, bundleProperty{property.kind, value})
	}
	blobs := append([]catalogBlob{
		{Schema: "olm.package", Name: Package, DefaultChannel: Channel, Description: csv.Annotations["description"],
			Icon: map[string]string{"base64data": csv.Spec.Icon[0].Data, "mediatype": csv.Spec.Icon[0].MediaType}},
		channel,
	}, append(bundles, bundle)...)
	var text bytes.Buffer
	for _, blob := range blobs {
		document, err := yaml.Marshal(blob)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	if faults := catalogFaults(blobs); len(faults) > 0 {
		return nil, fmt.Errorf("%w: the catalogue: %s", ErrOptions, strings.Join(faults, "; "))
	}
	return text.Bytes(), nil
}

// readCatalog reads a file-based catalogue. Fields that this package does not write are errors: they would be lost.
func readCatalog(text []byte) ([]catalogBlob, error) {
	var blobs []catalogBlob
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var blob catalogBlob
		if err := yaml.UnmarshalStrict([]byte(document), &blob); err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
		blobs = append(blobs, blob)
	}
	return blobs, nil
}
