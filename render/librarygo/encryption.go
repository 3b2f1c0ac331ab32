// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	configinformers "github.com/openshift/client-go/config/informers/externalversions/config/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/encryption/controllers"
	encryptionsecrets "github.com/openshift/library-go/pkg/operator/encryption/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// managedNamespace has the encryption keys and configurations.
const managedNamespace = "openshift-config-managed"

// EncryptionConfig returns the Secret with the encryption configuration of a component, key encryption-config.
func EncryptionConfig(component string) store.Object {
	return store.Object{Namespace: managedNamespace, Name: "encryption-config-" + component}
}

// Encryption returns the cycle that makes a component's key and encryption configuration, if spec.encryption.type of
// APIServer requests it. With an empty etcd its configuration counts as deployed and migrations as done, so that one
// cycle distributes the key for reading and writing, and every write to etcd is encrypted.
func Encryption(component string, operator Operator, resources ...schema.GroupResource) loop.Step {
	type constructor func(*store.Session, *encryption) factory.Controller
	member := func(name string, construct constructor, writes ...store.Pattern) loop.Loop {
		return loop.Loop{
			Name:       component + ": encryption: " + name,
			Writes:     append(writes, operator.Pattern()),
			AllowStale: operator.stale(),
			New: func(s *store.Session) (loop.Sync, error) {
				return operator.managed(s, reconcile(construct(s, newEncryption(s, component, operator, resources)), s)), nil
			},
		}
	}
	keys := store.Secrets(managedNamespace, "encryption-key-"+component+"-*")
	config := EncryptionConfig(component)
	return loop.Cycle(maxRounds,
		member("key", func(s *store.Session, e *encryption) factory.Controller {
			return controllers.NewKeyController(component, nil, e, e, e.enabled, e.operator, e.config, idleAPIServers{}, e.namespaces, e.core, e.selector, recorder(s))
		}, keys...),
		member("state", func(s *store.Session, e *encryption) factory.Controller {
			return controllers.NewStateController(component, e, e, e.enabled, e.operator, idleAPIServers{}, e.namespaces, e.core, e.selector, recorder(s))
		}, store.Secrets(config.Namespace, config.Name)...),
		member("migration", func(s *store.Session, e *encryption) factory.Controller {
			return controllers.NewMigrationController(component, e, e, e.enabled, finishedMigrator{}, e.operator, idleAPIServers{}, e.namespaces, e.core, e.selector, recorder(s))
		}, keys...),
	)
}

type encryption struct {
	idleInformer
	component  string
	resources  []schema.GroupResource
	operator   operatorClient
	config     configclient.APIServerInterface
	core       corev1client.CoreV1Interface
	namespaces namespaces
	selector   metav1.ListOptions
}

func newEncryption(s *store.Session, component string, operator Operator, resources []schema.GroupResource) *encryption {
	return &encryption{
		component:  component,
		resources:  resources,
		operator:   operator.client(s),
		config:     s.Config().ConfigV1().APIServers(),
		core:       s.Kube().CoreV1(),
		namespaces: informersFor(s, managedNamespace),
		selector:   metav1.ListOptions{LabelSelector: encryptionsecrets.EncryptionKeySecretsLabel + "=" + component},
	}
}

func (e *encryption) EncryptedGRs() []schema.GroupResource { return e.resources }

func (e *encryption) ShouldRunEncryptionControllers() (bool, error) { return true, nil }

func (e *encryption) enabled() (bool, error) {
	server, err := e.config.Get(background(), instance, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read apiservers.config.openshift.io %s: %w", instance, err)
	}
	mode := server.Spec.Encryption.Type
	return mode != "" && mode != configv1.EncryptionTypeIdentity, nil
}

// DeployedEncryptionConfigSecret returns the current configuration: no API server runs that would have to follow.
func (e *encryption) DeployedEncryptionConfigSecret(ctx context.Context) (*corev1.Secret, bool, error) {
	config := EncryptionConfig(e.component)
	secret, err := e.core.Secrets(config.Namespace).Get(ctx, config.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read secret %s: %w", config, err)
	}
	return secret, true, nil
}

// finishedMigrator is the migrator of an empty etcd.
type finishedMigrator struct{ idleInformer }

func (finishedMigrator) EnsureMigration(schema.GroupResource, string) (finished bool, result error, when time.Time, err error) {
	return true, nil, time.Now(), nil
}

func (finishedMigrator) PruneMigration(schema.GroupResource) error { return nil }

type idleAPIServers struct {
	configinformers.APIServerInformer
}

func (idleAPIServers) Informer() cache.SharedIndexInformer { return idleInformer{} }
