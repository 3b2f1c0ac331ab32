// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"fmt"

	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/store"
)

// ApplyConfigMap creates the ConfigMap, or updates it if its data, labels or annotations differ.
func ApplyConfigMap(ctx context.Context, s *store.Session, configMap *corev1.ConfigMap) error {
	if _, _, err := resourceapply.ApplyConfigMap(ctx, s.Kube().CoreV1(), recorder(s), configMap); err != nil {
		return fmt.Errorf("apply configmap %s/%s: %w", configMap.Namespace, configMap.Name, err)
	}
	return nil
}

// ApplySecret creates the Secret, or updates it if its data, labels or annotations differ.
func ApplySecret(ctx context.Context, s *store.Session, secret *corev1.Secret) error {
	if _, _, err := resourceapply.ApplySecret(ctx, s.Kube().CoreV1(), recorder(s), secret); err != nil {
		return fmt.Errorf("apply secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
