// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/testcluster/assets"
)

const openshiftAPI = "github.com/openshift/api"

// DefaultCRDs returns the CustomResourceDefinitions that every cluster gets, as paths inside module
// github.com/openshift/api.
func DefaultCRDs() []string {
	return []string{
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_12_etcd_01_etcds-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_ingress_00_ingresscontrollers-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_authentication_01_authentications-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_50_console_01_consoles.crd.yaml",
	}
}

func readCRDs(ctx context.Context, openshift, files []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	options := envtest.CRDInstallOptions{Paths: files, ErrorIfPathMissing: true}
	if len(openshift) > 0 {
		module, err := assets.ModuleFolder(ctx, openshiftAPI)
		if err != nil {
			return nil, fmt.Errorf("find the CustomResourceDefinitions: %w", err)
		}
		for _, file := range openshift {
			options.Paths = append(options.Paths, filepath.Join(module, filepath.FromSlash(file)))
		}
	}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinitions: %w", err)
	}
	return options.CRDs, nil
}

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
// module github.com/openshift/api, files any others. It returns when their resources are served.
func (c *Cluster) InstallCRDs(ctx context.Context, openshift, files []string) error {
	crds, err := readCRDs(ctx, openshift, files)
	if err != nil {
		return err
	}
	return installCRDs(ctx, c.admin, crds)
}
