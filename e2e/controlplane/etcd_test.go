// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"testing"
)

// A response of etcd's HTTP gateway.
func TestEtcdEntry(t *testing.T) {
	var response struct{ Kvs []EtcdEntry }
	const text = `{"header":{"revision":"7"},"kvs":[{"key":"L3JlZ2lzdHJ5","create_revision":"2","mod_revision":"2","version":"1","value":"azhz"}],"count":"1"}`
	if err := json.Unmarshal([]byte(text), &response); err != nil {
		t.Fatal(err)
	}
	if got := response.Kvs[0]; string(got.Key) != "/registry" || string(got.Value) != "k8s" || got.Version != 1 {
		t.Errorf("%q %q %d", got.Key, got.Value, got.Version)
	}
}

func TestOfSecret(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/secrets/default/a":                            true,
		"/kubernetes.io/secrets/openshift-etcd/a":                true,
		"kubernetes.io/secrets/openshift-etcd/a":                 true,
		"/registry/configmaps/secrets/a":                         false,
		"/registry/apiextensions.k8s.io/secrets/default/a":       false,
		"/registry/secrets/default":                              false,
		"/registry/clusterroles/system:controller:secrets/extra": false,
	} {
		if got := ofSecret(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

func TestInPlain(t *testing.T) {
	const own = "/kubernetes.io/secrets/default/" + secretName
	for name, test := range map[string]struct {
		secret EtcdEntry
		plain  bool
	}{
		"aescbc":          {EtcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 1}, false},
		"aesgcm":          {EtcdEntry{[]byte(own), []byte("k8s:enc:aesgcm:v1:1:\x00\x01"), 1}, false},
		"another's later": {EtcdEntry{[]byte("/kubernetes.io/secrets/a/b"), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 4}, false},
		"later":           {EtcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 2}, true},
		"protobuf":        {EtcdEntry{[]byte(own), []byte("k8s\x00\n\x0c\n\x02v1\x12\x06Secret" + secretText), 1}, true},
		"text inside":     {EtcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:" + secretText), 1}, true},
		"identity":        {EtcdEntry{[]byte(own), []byte("k8s:enc:identity:v1:"), 1}, true},
		"empty":           {EtcdEntry{[]byte(own), nil, 1}, true},
	} {
		if got := inPlain([]EtcdEntry{test.secret}); (len(got) > 0) != test.plain {
			t.Errorf("%s: %v", name, got)
		}
	}
}
