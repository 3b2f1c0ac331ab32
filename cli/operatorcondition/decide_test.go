// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// claimed returns a ClusterVersion with an entry, and managers that own it.
func claimed(unmanaged bool, namespace, name string, managers ...string) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{}
	add(version, unmanaged, namespace, name, managers...)
	return version
}

func add(version *configv1.ClusterVersion, unmanaged bool, namespace, name string, managers ...string) {
	entry := overrides.Deployment(namespace, name)
	entry.Unmanaged = unmanaged
	version.Spec.Overrides = append(version.Spec.Overrides, entry)
	keys := fmt.Sprintf(`k:{"group":"apps","kind":"Deployment","name":%q,"namespace":%q}`, name, namespace)
	for _, manager := range managers {
		version.ManagedFields = append(version.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "config.openshift.io/v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: fmt.Appendf(nil, `{"f:spec":{"f:overrides":{%q:{".":{},"f:name":{},"f:unmanaged":{}}}}}`, keys)},
		})
	}
}

func TestDecide(t *testing.T) {
	two := claimed(true, "openshift-etcd", "etcd-quorum-guard", patch.FieldOwner("etcdguard"))
	add(two, true, "openshift-console", "downloads", patch.FieldOwner("console"))
	atomic := claimed(true, "openshift-console", "downloads")
	atomic.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: patch.FieldOwner("console"), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "config.openshift.io/v1",
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:overrides":{}}}`)},
	}}
	const console = "Deployment openshift-console/downloads (module console)"
	for name, test := range map[string]struct {
		version *configv1.ClusterVersion
		claims  string // none if empty
	}{
		"no ClusterVersion": {},
		"no entry":          {version: &configv1.ClusterVersion{}},
		"one entry":         {claimed(true, "openshift-console", "downloads", patch.FieldOwner("console")), console},
		"shared with another client": {
			claimed(true, "openshift-console", "downloads", "kubectl", patch.FieldOwner("console")), console,
		},
		"two entries, sorted":       {two, console + ", Deployment openshift-etcd/etcd-quorum-guard (module etcdguard)"},
		"a list that is one value":  {atomic, console},
		"entry of another client":   {version: claimed(true, "openshift-console", "downloads", "kubectl")},
		"entry without an owner":    {version: claimed(true, "openshift-console", "downloads")},
		"similar manager":           {version: claimed(true, "openshift-console", "downloads", patch.Domain+"-other/console")},
		"entry that manages again":  {version: claimed(false, "openshift-console", "downloads", patch.FieldOwner("console"))},
		"another object is claimed": {version: claimed(true, "openshift-etcd", "other", "kubectl")},
	} {
		got, err := Decide(test.version)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := metav1.Condition{
			Type: "Upgradeable", Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "No module has an entry in ClusterVersion.spec.overrides",
		}
		if test.claims != "" {
			want = metav1.Condition{
				Type: "Upgradeable", Status: metav1.ConditionFalse, Reason: "OverrideClaimed", Message: "ClusterVersion.spec.overrides has " +
					test.claims + "; before an upgrade opt out of the module: docs/undo.md#before-an-upgrade",
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestDecideDamagedOwners(t *testing.T) {
	version := claimed(true, "openshift-console", "downloads", patch.FieldOwner("console"))
	version.ManagedFields[0].FieldsV1.Raw = []byte("{")
	if got, err := Decide(version); err == nil || !strings.Contains(err.Error(), ".spec.overrides") {
		t.Errorf("%+v, %v; want an error that names the field", got, err)
	}
}
