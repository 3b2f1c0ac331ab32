// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	_ "embed" // the icon and the description
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Package is the name of the package in a catalogue.
	Package = "sno"
	// Channel is the only channel; its name follows OLM's convention.
	Channel = "candidate"
	// minKubeVersion has server-side apply, policy/v1 and events.k8s.io/v1: docs/compatibility.md.
	minKubeVersion = "1.22.0"
	// openshiftVersions are those whose OLM applies a NetworkPolicy from a bundle.
	openshiftVersions = "v4.12"
	repository        = "https://github.com/solonode/sno"
	koImage           = "ko://github.com/solonode/sno/cli/cmd/kubectl-sno"
	program           = "kubectl-sno"
)

var (
	//go:embed icon.svg
	icon []byte
	//go:embed description.md
	description string

	byDigest = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}$`)
)

// ErrOptions is returned for invalid options.
var ErrOptions = errors.New("invalid options")

// Options are what the manifests do not have.
type Options struct {
	Version string // of the release, such as v0.1.0
	Image   string // of kubectl-sno, by digest
	// BundleImage is the image of the bundle by digest, for the catalogue; empty for none.
	BundleImage  string
	Architecture string    // of the image
	Created      time.Time // of the sources
	// Previous is the catalogue of the previous release; empty for none.
	Previous []byte
}

func (o Options) validate() (semver.Version, error) {
	parsed, err := semver.Parse(strings.TrimPrefix(o.Version, "v"))
	switch {
	case err != nil || !strings.HasPrefix(o.Version, "v"):
		return parsed, fmt.Errorf("%w: the version %q is not like v0.1.0", ErrOptions, o.Version)
	case !byDigest.MatchString(o.Image):
		return parsed, fmt.Errorf("%w: the image %q is not like registry.example.com/sno/kubectl-sno@sha256:DIGEST", ErrOptions, o.Image)
	case o.BundleImage != "" && !byDigest.MatchString(o.BundleImage):
		return parsed, fmt.Errorf("%w: the image of the bundle, %q, has no digest", ErrOptions, o.BundleImage)
	case o.Architecture == "" || o.Created.IsZero():
		return parsed, fmt.Errorf("%w: the architecture and the time must be given", ErrOptions)
	}
	return parsed, nil
}

// name returns the name of the ClusterServiceVersion.
func name(parsed semver.Version) string { return Package + ".v" + parsed.String() }

// skipRange allows an upgrade from every earlier version at once: there is no data to convert, and field owners never
// change.
func skipRange(parsed semver.Version) string { return "<" + parsed.String() }

// ClusterServiceVersion returns the description of the operator for OLM.
func ClusterServiceVersion(m *Manifests, o Options) (*v1alpha1.ClusterServiceVersion, error) {
	parsed, err := o.validate()
	if err != nil {
		return nil, err
	}
	deployment := m.Deployment.DeepCopy()
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		if container.Image != koImage {
			return nil, fmt.Errorf("%w: container %s has the image %s", ErrManifests, container.Name, container.Image)
		}
		container.Image = o.Image
	}
	namespace, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": m.Namespace.Name, "labels": m.Namespace.Labels, "annotations": m.Namespace.Annotations,
	}})
	if err != nil {
		return nil, err
	}
	csv := &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name(parsed), Namespace: "placeholder",
			Labels: map[string]string{
				"operatorframework.io/arch." + o.Architecture: "supported", "operatorframework.io/os.linux": "supported",
			},
			Annotations: annotations(parsed, o),
		},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			Version: version.OperatorVersion{Version: parsed}, Maturity: "alpha", MinKubeVersion: minKubeVersion,
			DisplayName: "Single-node patches of cluster operators", Description: description,
			Keywords:    []string{"single node", "topology", "edge", "ingress", "drain"},
			Provider:    v1alpha1.AppLink{Name: "sno", URL: repository},
			Maintainers: []v1alpha1.Maintainer{{Name: "sno", Email: "sno@users.noreply.github.com"}},
			Links:       []v1alpha1.AppLink{{Name: "Source", URL: repository}, {Name: "Undo", URL: repository + "/blob/main/docs/undo.md"}},
			Icon:        []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}},
			// Its objects are cluster-scoped or in OpenShift's own namespaces, which no OperatorGroup has to select.
			InstallModes: []v1alpha1.InstallMode{
				{Type: v1alpha1.InstallModeTypeOwnNamespace}, {Type: v1alpha1.InstallModeTypeSingleNamespace},
				{Type: v1alpha1.InstallModeTypeMultiNamespace}, {Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			// What must be served, or the process does not start: docs/compatibility.md.
			NativeAPIs: []metav1.GroupVersionKind{
				{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"},
				{Group: "config.openshift.io", Version: "v1", Kind: "Ingress"},
				{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"},
			},
			RelatedImages: []v1alpha1.RelatedImage{{Name: program, Image: o.Image}},
			InstallStrategy: v1alpha1.NamedInstallStrategy{
				StrategyName: v1alpha1.InstallStrategyNameDeployment,
				StrategySpec: v1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs:    []v1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec}},
					Permissions:        []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: m.Account, Rules: m.Operator}},
					ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: m.Account, Rules: m.Cluster}},
				},
			},
		},
	}
	csv.Annotations["operatorframework.io/suggested-namespace"] = m.Namespace.Name
	csv.Annotations["operatorframework.io/suggested-namespace-template"] = string(namespace)
	return csv, nil
}

func annotations(parsed semver.Version, o Options) map[string]string {
	all := map[string]string{
		"alm-examples":   "[]", // it has no CustomResourceDefinitions
		"capabilities":   "Basic Install",
		"categories":     "OpenShift Optional",
		"certified":      "false",
		"containerImage": o.Image,
		"createdAt":      o.Created.UTC().Format(time.RFC3339),
		"description":    "Makes OpenShift's cluster operators fit a single control-plane node",
		"repository":     repository,
		"support":        repository + "/issues",
		"olm.skipRange":  skipRange(parsed),
		// For consoles before 4.14. The value Adaptable is left out: topology does not know that mode.
		"operators.openshift.io/infrastructure-features": `["disconnected", "sno"]`,
	}
	for feature, supported := range features {
		all["features.operators.openshift.io/"+feature] = cmp.Or(map[bool]string{true: "true"}[supported], "false")
	}
	return all
}

// features are claims about the operator. It reaches only the API server, members of etcd and kubelets of its cluster,
// by an image with a digest. Its cryptography is Go's, and the metrics' TLS does not follow the APIServer's profile.
var features = map[string]bool{
	"disconnected":     true,
	"fips-compliant":   false,
	"proxy-aware":      false,
	"tls-profiles":     false,
	"token-auth-aws":   false,
	"token-auth-azure": false,
	"token-auth-gcp":   false,
	"cnf":              false,
	"cni":              false,
	"csi":              false,
}
