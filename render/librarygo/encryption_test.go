// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/solonode/sno/render/librarygo"
)

var encrypted = []schema.GroupResource{{Resource: "secrets"}, {Resource: "configmaps"}, {Group: "route.openshift.io", Resource: "routes"}}

// An API server with the configuration writes nothing in plain text.
func TestEncryption(t *testing.T) {
	for _, mode := range []configv1.EncryptionType{configv1.EncryptionTypeAESCBC, configv1.EncryptionTypeAESGCM} {
		t.Run(string(mode), func(t *testing.T) {
			s := newStore(t, apiServer(mode))
			step := librarygo.Encryption(namespace, operator, encrypted...)
			config := librarygo.EncryptionConfig(namespace)
			must(t, s, step)
			secret := secrets(t, s, config.Namespace)[config.Name]
			if secret == nil {
				t.Fatal("there is no configuration")
			}
			var decoded apiserverv1.EncryptionConfiguration
			if err := json.Unmarshal(secret.Data["encryption-config"], &decoded); err != nil {
				t.Fatal(err)
			}
			if len(decoded.Resources) != len(encrypted) {
				t.Errorf("%d resources are configured, want %d", len(decoded.Resources), len(encrypted))
			}
			for _, resource := range decoded.Resources {
				// Plain text can only be read.
				first, last := resource.Providers[0], resource.Providers[len(resource.Providers)-1]
				if first.Identity != nil || (first.AESCBC != nil) != (mode == configv1.EncryptionTypeAESCBC) || (first.AESGCM != nil) != (mode == configv1.EncryptionTypeAESGCM) {
					t.Errorf("%v are written with %+v", resource.Resources, first)
				}
				if last.Identity == nil {
					t.Errorf("%v are read with %+v at last", resource.Resources, last)
				}
			}
			key := secrets(t, s, config.Namespace)["encryption-key-"+namespace+"-1"]
			if key == nil || len(key.Data["encryption.apiserver.operator.openshift.io-key"]) != 32 || key.Annotations["encryption.apiserver.operator.openshift.io/mode"] != string(mode) {
				t.Errorf("the key is %v", key)
			} else if key.Annotations["encryption.apiserver.operator.openshift.io/migrated-timestamp"] == "" {
				t.Errorf("the key is not marked as migrated: %v", key.Annotations)
			}
			if must(t, s, step) {
				t.Error("a second run wrote something")
			}
		})
	}
}

func TestNoEncryption(t *testing.T) {
	for _, mode := range []configv1.EncryptionType{"", configv1.EncryptionTypeIdentity} {
		s := newStore(t, apiServer(mode))
		step := librarygo.Encryption(namespace, operator, encrypted...)
		must(t, s, step)
		if found := secrets(t, s, "openshift-config-managed"); len(found) > 0 {
			t.Errorf("%q: there are %v", mode, found)
		}
		if must(t, s, step) {
			t.Errorf("%q: a second run has written something", mode)
		}
	}
}

func TestEncryptionWithoutAPIServer(t *testing.T) {
	fails(t, run(t, newStore(t), librarygo.Encryption(namespace, operator, encrypted...)), namespace+": encryption", "apiservers.config.openshift.io", `"cluster" not found`)
}
