// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubeapiserver"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// AdminKubeconfig makes the administrator's kubeconfig before the control plane is rendered, possibly on another
// machine, as an installer does (U-INS-1). The objects, which hold private keys, go into the input of Run, which keeps
// the certificates and trusts their signers.
func AdminKubeconfig(ctx context.Context, infrastructure *configv1.Infrastructure, validity time.Duration) (objects []runtime.Object, kubeconfig []byte, err error) {
	api, err := store.New(infrastructure)
	if err != nil {
		return nil, nil, err
	}
	s := &inputs.Settings{Cluster: &inputs.Cluster{Infrastructure: infrastructure}, Validity: validity}
	if err := loop.Run(ctx, api, []loop.Step{kubeapiserver.AdminCertificates(s)}, loop.Options{Timeout: defaultLoopTimeout}); err != nil {
		return nil, nil, err
	}
	all, err := api.Objects()
	if err != nil {
		return nil, nil, err
	}
	for _, object := range all {
		switch object.(type) {
		case *corev1.Secret, *corev1.ConfigMap:
			objects = append(objects, object)
		}
	}
	client, bundle := find[*corev1.Secret](objects, kubeapiserver.AdminClientCertificate), find[*corev1.ConfigMap](objects, kubeapiserver.AdminServerCA)
	if client == nil || bundle == nil {
		return nil, nil, fmt.Errorf("%s and %s: %w", kubeapiserver.AdminClientCertificate, kubeapiserver.AdminServerCA, staticpods.ErrMissing)
	}
	kubeconfig, err = kubeapiserver.AdminKubeconfig(infrastructure, client, bundle)
	return objects, kubeconfig, err
}
