// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/phase"
)

// Name of the ConfigMap with the statuses, in kube-system. It is written when the cluster is complete.
const Name = "sno-install"

// ErrNotAvailable is in the error of a cluster whose operators have not finished.
var ErrNotAvailable = errors.New("ClusterVersion is not available")

// Available returns nil if ClusterVersion is available, or the cluster has no such kind or object: the live system
// applies that of a release, and where there is none, no cluster-version-operator runs.
func Available(ctx context.Context, client kubernetes.Interface) error {
	text, err := client.Discovery().RESTClient().Get().AbsPath("/apis/config.openshift.io/v1/clusterversions").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	var list configv1.ClusterVersionList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return fmt.Errorf("read ClusterVersion: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	message := ""
	for _, version := range list.Items {
		for _, c := range version.Status.Conditions {
			switch {
			case c.Type == configv1.OperatorAvailable && c.Status == configv1.ConditionTrue:
				return nil
			case c.Type == configv1.OperatorProgressing || c.Type == "Failing" && c.Status == configv1.ConditionTrue:
				message += fmt.Sprintf("%s: %s; ", c.Type, c.Message)
			}
		}
	}
	return fmt.Errorf("%w: %s", ErrNotAvailable, message)
}

// Publish writes the statuses to the cluster, each below its command.
func Publish(ctx context.Context, client kubernetes.Interface, all []phase.Status) error {
	data := map[string]string{}
	for _, s := range all {
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return fmt.Errorf("status of %s: %w", s.Command, err)
		}
		data[s.Command] = string(text)
	}
	m := corev1ac.ConfigMap(Name, metav1.NamespaceSystem).WithData(data)
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Apply(ctx, m, metav1.ApplyOptions{FieldManager: join.FieldManager})
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, Name, err)
	}
	return nil
}
