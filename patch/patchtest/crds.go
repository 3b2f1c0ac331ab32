// SPDX-License-Identifier: Apache-2.0

package patchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Names of CustomResourceDefinitions for Options.CRDs, which accepts all of github.com/openshift/api.
const (
	Infrastructures    = "infrastructures.config.openshift.io"
	Ingresses          = "ingresses.config.openshift.io"
	ClusterOperators   = "clusteroperators.config.openshift.io"
	ClusterVersions    = "clusterversions.config.openshift.io"
	Consoles           = "consoles.operator.openshift.io"
	IngressControllers = "ingresscontrollers.operator.openshift.io"
	Authentications    = "authentications.operator.openshift.io"
)

const apiModule = "github.com/openshift/api"

// ErrNoCRD is returned for a CustomResourceDefinition that github.com/openshift/api does not have.
var ErrNoCRD = errors.New("no such CustomResourceDefinition in " + apiModule)

// variants are suffixes of manifests that a self-managed cluster without tech-preview features installs.
var variants = []string{"", "-Default", "-SelfManagedHA", "-SelfManagedHA-Default"}

// CRDManifest returns the manifest of the CRD ("plural.group"). File names differ between versions, so it reads them.
func CRDManifest(moduleDir, name string) (string, error) {
	plural, _, _ := strings.Cut(name, ".")
	for _, variant := range variants {
		files, err := filepath.Glob(filepath.Join(moduleDir, "*", "*", "zz_generated.crd-manifests", "*_"+plural+variant+".crd.yaml"))
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNoCRD, name, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("reading the CRD %s: %w", name, err)
			}
			if bytes.Contains(text, []byte("\n  name: "+name+"\n")) {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s below %s", ErrNoCRD, name, moduleDir)
}

// APIModuleDir returns the folder of the version of github.com/openshift/api that the calling module uses.
func APIModuleDir(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", apiModule)
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s: %w: %s", apiModule, err, strings.TrimSpace(stderr.String()))
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("the module %s is not in the module cache; run `go mod download %s`", apiModule, apiModule)
	}
	return dir, nil
}

func readCRDs(ctx context.Context, names []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if len(names) == 0 {
		return nil, nil
	}
	module, err := APIModuleDir(ctx)
	if err != nil {
		return nil, err
	}
	options := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, name := range names {
		file, err := CRDManifest(module, name)
		if err != nil {
			return nil, err
		}
		options.Paths = append(options.Paths, file)
	}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("reading CRDs: %w", err)
	}
	allowDualReplica(options.CRDs)
	return options.CRDs, nil
}

// allowDualReplica adds the topology DualReplica to the CRD of Infrastructure. In openshift/api of the set of versions
// only manifests of the tech preview have it, and API servers refuse these for the cost of their rules.
func allowDualReplica(crds []*apiextensionsv1.CustomResourceDefinition) {
	for _, crd := range crds {
		if crd.Name != Infrastructures {
			continue
		}
		for _, version := range crd.Spec.Versions {
			status := version.Schema.OpenAPIV3Schema.Properties["status"]
			topology := status.Properties["controlPlaneTopology"]
			dual := apiextensionsv1.JSON{Raw: []byte(`"DualReplica"`)}
			if !slices.ContainsFunc(topology.Enum, func(value apiextensionsv1.JSON) bool { return string(value.Raw) == string(dual.Raw) }) {
				topology.Enum = append(topology.Enum, dual)
			}
			status.Properties["controlPlaneTopology"] = topology // a map of structs, shared with the schema
		}
	}
}
