// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/testcluster/assets"
)

// Names of CustomResourceDefinitions that tests often need; all of github.com/openshift/api have one, PLURAL.GROUP.
const (
	Infrastructures    = "infrastructures.config.openshift.io"
	Ingresses          = "ingresses.config.openshift.io"
	ClusterOperators   = "clusteroperators.config.openshift.io"
	ClusterVersions    = "clusterversions.config.openshift.io"
	Consoles           = "consoles.operator.openshift.io"
	IngressControllers = "ingresscontrollers.operator.openshift.io"
	Authentications    = "authentications.operator.openshift.io"
)

// Module is the Go module with OpenShift's CustomResourceDefinitions.
const Module = "github.com/openshift/api"

// ErrNoCRD is returned for a CustomResourceDefinition that github.com/openshift/api does not have.
var ErrNoCRD = errors.New("no such CustomResourceDefinition in " + Module)

// variants are suffixes of manifests that a self-managed cluster without tech-preview features installs.
var variants = []string{"", "-Default", "-SelfManagedHA", "-SelfManagedHA-Default"}

// Manifest returns the manifest of the CRD ("plural.group"). File names differ between versions, so it reads them.
func Manifest(moduleDir, name string) (string, error) {
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

// Read returns one definition for every name: that of files, if both have it. An entry of openshift is a name, or a
// path in Module.
func Read(ctx context.Context, openshift, files []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	options := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	if len(openshift) > 0 {
		module, err := assets.ModuleFolder(ctx, Module)
		if err != nil {
			return nil, fmt.Errorf("find the CustomResourceDefinitions: %w", err)
		}
		for _, entry := range openshift {
			file := filepath.Join(module, filepath.FromSlash(entry))
			if !strings.Contains(entry, "/") {
				if file, err = Manifest(module, entry); err != nil {
					return nil, err
				}
			}
			options.Paths = append(options.Paths, file)
		}
	}
	options.Paths = append(options.Paths, files...) // the last one wins
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinitions: %w", err)
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
