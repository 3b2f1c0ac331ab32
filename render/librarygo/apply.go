// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"fmt"

	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/store"
)

// Apply creates ConfigMaps and Secrets, or updates those whose data, labels or annotations differ.
func Apply(ctx context.Context, s *store.Session, objects ...runtime.Object) error {
	core := s.Kube().CoreV1()
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if _, _, err = resourceapply.ApplyConfigMap(ctx, core, recorder(s), object); err != nil {
				err = fmt.Errorf("apply configmap %s/%s: %w", object.Namespace, object.Name, err)
			}
		case *corev1.Secret:
			if _, _, err = resourceapply.ApplySecret(ctx, core, recorder(s), object); err != nil {
				err = fmt.Errorf("apply secret %s/%s: %w", object.Namespace, object.Name, err)
			}
		default:
			err = fmt.Errorf("apply %T: %w", object, store.ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
