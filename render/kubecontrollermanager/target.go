package kubecontrollermanager

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

// ErrNotObserved is in the error of the target config when something was not observed without which no pod may be made.
var ErrNotObserved = errors.New("not observed yet")

// targetConfig returns the loop that writes what a revision has of the operator's own.
func targetConfig(s *inputs.Settings) loop.Loop {
	return loop.Loop{
		Name: component + ": target config",
		Writes: store.ConfigMaps(namespace, "config", "cluster-policy-controller-config", "recycler-config", "serviceaccount-ca",
			"controller-manager-kubeconfig", "kube-controller-cert-syncer-kubeconfig", "kube-controller-manager-pod", "trusted-ca-bundle"),
		Outdated: []store.Pattern{librarygo.KubeControllerManager.Pattern()}, // The revision changes its status, this reads the spec.
		New: func(session *store.Session) (loop.Sync, error) {
			return func(ctx context.Context) error {
				wanted, err := readTarget(ctx, session)
				if err != nil {
					return err
				}
				configMaps, err := wanted.configMaps(s)
				if err != nil {
					return err
				}
				for _, c := range configMaps {
					if err := librarygo.ApplyConfigMap(ctx, session, c); err != nil {
						return err
					}
				}
				return nil
			}, nil
		},
	}
}

// target is what the target config goes by.
type target struct {
	observed map[string]any
	// serving reports whether there is a serving certificate.
	serving bool
	// serverCA has the CAs of kube-apiserver, ingressCA those of routes, empty without an ingress operator.
	serverCA, ingressCA string
	infrastructure      *configv1.Infrastructure
}

func readTarget(ctx context.Context, session *store.Session) (target, error) {
	var t target
	var err error
	if t.observed, err = librarygo.ObservedConfig(ctx, session, librarygo.KubeControllerManager); err != nil {
		return t, err
	}
	core := session.Kube().CoreV1()
	_, err = core.Secrets(servingCert.Namespace).Get(ctx, servingCert.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return t, err
	}
	t.serving = err == nil
	server, err := core.ConfigMaps(managedNamespace).Get(ctx, "kube-apiserver-server-ca", metav1.GetOptions{})
	if err != nil {
		return t, err
	}
	t.serverCA = server.Data["ca-bundle.crt"]
	ingress, err := core.ConfigMaps(managedNamespace).Get(ctx, "default-ingress-cert", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return t, err
	}
	if err == nil {
		t.ingressCA = ingress.Data["ca-bundle.crt"]
	}
	t.infrastructure, err = session.Config().ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	return t, err
}

func (t target) configMaps(s *inputs.Settings) ([]*corev1.ConfigMap, error) {
	if _, has, err := unstructured.NestedSlice(t.observed, "extendedArguments", "cluster-name"); err != nil || !has {
		return nil, errors.Join(fmt.Errorf("extendedArguments.cluster-name: %w", ErrNotObserved), err)
	}
	config := observe.Merge(defaults(s), observe.Keep(t.observed, "extendedArguments", "projectConfig", "serviceServingCert"))
	policy := observe.Merge(policyDefaults(t.serving), observe.Keep(t.observed, "featureGates", "servingInfo"))
	serviceAccountCA, err := cabundle.Union(t.serverCA, t.ingressCA)
	if err != nil {
		return nil, fmt.Errorf("configmap %s/kube-apiserver-server-ca: %w", managedNamespace, err)
	}
	server, err := podtemplate.Server(t.infrastructure, s.Profile)
	if err != nil {
		return nil, err
	}
	pod, err := podFor(s, config, t)
	if err != nil {
		return nil, err
	}
	const client = podtemplate.CertDir + "/secrets/kube-controller-manager-client-cert-key/tls"
	var configMaps []*corev1.ConfigMap
	for _, make := range []func() (*corev1.ConfigMap, error){
		func() (*corev1.ConfigMap, error) { return configMap("config", "config.yaml", config) },
		func() (*corev1.ConfigMap, error) {
			return configMap("cluster-policy-controller-config", "config.yaml", policy)
		},
		func() (*corev1.ConfigMap, error) {
			return bundle(store.Object{Namespace: namespace, Name: "serviceaccount-ca"}, serviceAccountCA), nil
		},
		func() (*corev1.ConfigMap, error) {
			return podtemplate.Kubeconfig{
				Cluster: "lb-int", User: component, Server: server,
				CA:   podtemplate.ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt",
				Cert: client + ".crt", Key: client + ".key",
			}.ConfigMap(namespace, "controller-manager-kubeconfig")
		},
		func() (*corev1.ConfigMap, error) {
			return podtemplate.ConfigMap(namespace, "kube-controller-manager-pod", pod, s.Version)
		},
	} {
		c, err := make()
		if err != nil {
			return nil, err
		}
		configMaps = append(configMaps, c)
	}
	if s.Profile == inputs.OpenShift {
		c, err := podtemplate.LoopbackKubeconfig(component).ConfigMap(namespace, "kube-controller-cert-syncer-kubeconfig")
		if err != nil {
			return nil, err
		}
		configMaps = append(configMaps, c)
	}
	if recycles(s) {
		c, err := configMap("recycler-config", "recycler-pod.yaml", recycler(s))
		if err != nil {
			return nil, err
		}
		configMaps = append(configMaps, c)
	}
	// The network operator fills it in, by the label.
	return append(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "trusted-ca-bundle",
		Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": "true"},
	}}), nil
}

func configMap(name, key string, content any) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/%s: %w", namespace, name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{key: string(text)},
	}, nil
}
