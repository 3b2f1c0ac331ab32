// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/crds"
)

// DefaultCRDs returns the CustomResourceDefinitions that every cluster gets, as paths inside module
// github.com/openshift/api.
func DefaultCRDs() []string {
	return []string{
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_12_etcd_01_etcds-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_ingress_00_ingresscontrollers.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_authentication_01_authentications.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_console_01_consoles.crd.yaml",
	}
}

// ErrCRDs means that a folder cannot be read, or does not contain CustomResourceDefinitions and nothing else.
var ErrCRDs = errors.New("not a folder of CustomResourceDefinitions")

func installCRDs(ctx context.Context, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	if err := envtest.CreateCRDs(config, crds); err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions: %w", err)
	}
	// WaitForCRDs takes no context, so it is called for a second at a time.
	options := envtest.CRDInstallOptions{MaxTime: time.Second, PollInterval: pollInterval}
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		last = envtest.WaitForCRDs(config, crds, options)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the CustomResourceDefinitions: %w: %w", err, last)
	}
	return nil
}

// InstallCRDs installs additional CustomResourceDefinitions into a running cluster: openshift names files inside
// module github.com/openshift/api, files any others. One of openshift that is also in Config.CRDFiles is not installed.
// It returns when their resources are served.
func (c *Cluster) InstallCRDs(ctx context.Context, openshift, files []string) error {
	definitions, err := crds.Read(ctx, openshift, nil)
	if err != nil {
		return err
	}
	definitions = slices.DeleteFunc(definitions, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return c.given[crd.Name] })
	others, err := crds.Read(ctx, nil, files)
	if err != nil {
		return err
	}
	return installCRDs(ctx, c.admin, append(definitions, others...))
}

// CRDFiles returns the YAML and JSON files of folders, without subfolders, for Config.CRDFiles. Every document in them
// must be a CustomResourceDefinition, and no two of them may define the same one.
func CRDFiles(folders ...string) ([]string, error) {
	var files []string
	in := map[string]string{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCRDs, err)
		}
		before := len(files)
		for _, entry := range entries {
			if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
				continue
			}
			file := filepath.Join(folder, entry.Name())
			names, err := crdNames(file)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrCRDs, file, err)
			}
			for _, name := range names {
				if other, found := in[name]; found {
					return nil, fmt.Errorf("%w: %s and %s both define %s; keep the one of the cluster's feature set", ErrCRDs, other, file, name)
				}
				in[name] = file
			}
			files = append(files, file)
		}
		if len(files) == before {
			return nil, fmt.Errorf("%w: %s has no YAML or JSON file", ErrCRDs, folder)
		}
	}
	return files, nil
}

// protected reports whether the community of Kubernetes has to approve the kinds of a group.
func protected(group string) bool {
	return group == "k8s.io" || group == "kubernetes.io" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")
}

// crdNames returns the names of the CustomResourceDefinitions in a file, which has nothing else.
func crdNames(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var names []string
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(file)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var crd *apiextensionsv1.CustomResourceDefinition
		switch err := yaml.Unmarshal(document, &crd); {
		case err != nil:
			return nil, err
		case crd == nil: // comments only
			continue
		case crd.APIVersion != apiextensionsv1.SchemeGroupVersion.String() || crd.Kind != "CustomResourceDefinition" || crd.Name == "":
			return nil, fmt.Errorf("it has %q of %q, wanted only kind CustomResourceDefinition of %s", //nolint:err113 // ErrCRDs is added
				crd.Kind, crd.APIVersion, apiextensionsv1.SchemeGroupVersion)
		case protected(crd.Spec.Group) && crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation] == "":
			return nil, fmt.Errorf("%s needs the annotation %s: an API server does not serve kinds of %s without it", //nolint:err113 // the same
				crd.Name, apiextensionsv1.KubeAPIApprovedAnnotation, crd.Spec.Group)
		}
		names = append(names, crd.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("it has no document") //nolint:err113 // ErrCRDs is added
	}
	return names, nil
}
