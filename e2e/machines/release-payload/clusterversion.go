// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// definitions has the definitions of the operators' resources, which the renders do not have.
const definitions = "/release-manifests/definitions/"

// namespaces are those of the payload into which the renders write.
var namespaces = []string{"openshift-config", "openshift-config-managed", "openshift-machine-config-operator"}

// operators are those without which the cluster is not available.
var operators = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// clusterVersionOperator creates definitions and namespaces, and reports the version as complete when the operators are
// available.
func clusterVersionOperator(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	kubeconfig, image := flags.String("kubeconfig", "", ""), flags.String("release-image", "", "")
	for _, name := range []string{"enable-auto-update", "listen", "v", "serving-cert-file", "serving-key-file", "always-enable-capabilities"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := create(ctx, kube, extensions)
		if err == nil {
			err = report(ctx, client, *image)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return false, nil
	})
}

func create(ctx context.Context, kube kubernetes.Interface, client apiextensions.Interface) error {
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	names, err := filepath.Glob(definitions + "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := read(name, &definition); err != nil {
			return err
		}
		if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &definition, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func report(ctx context.Context, client configclient.Interface, image string) error {
	version, err := client.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var waits []string
	for _, name := range operators {
		if o, err := client.ConfigV1().ClusterOperators().Get(ctx, name, metav1.GetOptions{}); err != nil || !available(o) {
			waits = append(waits, name)
		}
	}
	var release struct{ Version string }
	if err := read("/release-manifests/release-metadata", &release); err != nil {
		return err
	}
	complete, progressing, state := configv1.ConditionTrue, configv1.ConditionFalse, configv1.CompletedUpdate
	if len(waits) > 0 {
		complete, progressing, state = configv1.ConditionFalse, configv1.ConditionTrue, configv1.PartialUpdate
	}
	if len(version.Status.History) == 1 && version.Status.History[0].State == state {
		return nil
	}
	now := metav1.Now()
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, LastTransitionTime: now, Message: "operators that are not available: " + strings.Join(waits, ", ")}
	}
	version.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: release.Version, Image: image}, ObservedGeneration: version.Generation, VersionHash: "stand-in",
		History:    []configv1.UpdateHistory{{State: state, Version: release.Version, Image: image, StartedTime: now}},
		Conditions: []configv1.ClusterOperatorStatusCondition{condition(configv1.OperatorAvailable, complete), condition(configv1.OperatorProgressing, progressing)},
	}
	if state == configv1.CompletedUpdate {
		version.Status.History[0].CompletionTime = &now
	}
	_, err = client.ConfigV1().ClusterVersions().UpdateStatus(ctx, version, metav1.UpdateOptions{})
	return err
}

func available(o *configv1.ClusterOperator) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == configv1.OperatorAvailable {
			return c.Status == configv1.ConditionTrue
		}
	}
	return false
}
