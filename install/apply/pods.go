// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/install/phase"
)

// ErrRequiredPod is in the error of a required pod with a wrong syntax.
var ErrRequiredPod = errors.New("required pods are NAMESPACE/PREFIX, or DESCRIPTION:NAMESPACE/PREFIX|NAMESPACE/PREFIX")

type pods struct {
	description string
	prefixes    []prefix
}

type prefix struct{ namespace, name string }

func parsePods(required []string) ([]pods, error) {
	var all []pods
	for _, text := range required {
		if text == "" {
			continue
		}
		p := pods{description: text}
		alternatives := text
		if description, rest, has := strings.Cut(text, ":"); has {
			p.description, alternatives = description, rest
		}
		for alternative := range strings.SplitSeq(alternatives, "|") {
			namespace, name, has := strings.Cut(alternative, "/")
			if !has || namespace == "" || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q: %w: %w", text, ErrRequiredPod, phase.ErrInput)
			}
			p.prefixes = append(p.prefixes, prefix{namespace, name})
		}
		all = append(all, p)
	}
	return all, nil
}

func (r *run) wait(ctx context.Context, required []pods, interval time.Duration) error {
	for _, p := range required {
		if err := r.progress.Until(ctx, interval, "pod "+p.description, func(ctx context.Context) error {
			return r.ready(ctx, p)
		}); err != nil {
			return fmt.Errorf("required pod %s: %w", p.description, err)
		}
	}
	return nil
}

var errNotReady = errors.New("not Ready")

func (r *run) ready(ctx context.Context, p pods) error {
	for _, alternative := range p.prefixes {
		list, err := r.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(alternative.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err //nolint:wrapcheck // the caller names the pod
		}
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.GetName(), alternative.name) && isReady(pod) {
				return nil
			}
		}
	}
	return errNotReady
}

func isReady(pod unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(pod.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(corev1.PodReady) {
			return c["status"] == string(corev1.ConditionTrue)
		}
	}
	return false
}
