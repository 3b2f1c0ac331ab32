// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/observe"
)

func fullyObserved() map[string]any {
	return observe.Merge(
		argument("etcd-servers", "https://localhost:2379"), argument("service-account-issuer", "https://kubernetes.default.svc"),
		plugin(restrictedEndpoints, map[string]any{"kind": "RestrictedEndpointsAdmissionConfig"}),
		map[string]any{"servicesSubnet": "172.30.0.0/16", "servingInfo": map[string]any{"namedCertificates": []any{certificate("/c")}}},
	)
}

// The error names each required value that is missing or empty (U-REN-7).
func TestRequired(t *testing.T) {
	if err := checkObserved(fullyObserved()); err != nil {
		t.Fatalf("with all values: %v", err)
	}
	values := [][]string{
		{"servingInfo", "namedCertificates"}, {"apiServerArguments", "etcd-servers"}, {"apiServerArguments", "service-account-issuer"},
		{"servicesSubnet"}, {"admission", "pluginConfig", "network.openshift.io/RestrictedEndpointsAdmission"},
	}
	for _, path := range values {
		name := strings.Join(path, ".")
		for which, change := range map[string]func(map[string]any) error{
			"missing": func(o map[string]any) error { unstructured.RemoveNestedField(o, path...); return nil },
			"empty":   func(o map[string]any) error { return unstructured.SetNestedField(o, "", path...) },
			"no list": func(o map[string]any) error { return unstructured.SetNestedSlice(o, []any{}, path...) },
		} {
			t.Run(name+" "+which, func(t *testing.T) {
				observed := fullyObserved()
				if err := change(observed); err != nil {
					t.Fatal(err)
				}
				err := checkObserved(observed)
				if !errors.Is(err, observe.ErrNotObserved) || !strings.Contains(err.Error(), name+": ") {
					t.Errorf("error %v, want one that names %s", err, name)
				}
			})
		}
	}
	err := checkObserved(nil)
	for _, path := range values {
		if name := strings.Join(path, "."); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("nothing observed: %s is not named in: %v", name, err)
		}
	}
}

func TestMergeConfig(t *testing.T) {
	observed := observe.Merge(fullyObserved(), argument("shutdown-delay-duration", "0s"), argument("enable-admission-plugins", "example.test/Extra"),
		map[string]any{proxyKey: map[string]any{"proxy": map[string]any{"NO_PROXY": ".svc"}}, gracePeriodKey: "15"})
	config, err := mergeConfig(observed)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{proxyKey, gracePeriodKey} {
		if _, there := config[key]; there {
			t.Errorf("%s is about the pod", key)
		}
	}
	get := func(flag string) []string {
		values, _, err := unstructured.NestedStringSlice(config, "apiServerArguments", flag)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	if diff := cmp.Diff([]string{"0s"}, get("shutdown-delay-duration")); diff != "" {
		t.Errorf("what was observed replaces the default (-want +got):\n%s", diff)
	}
	plugins := strings.Join(get("enable-admission-plugins"), " ")
	for _, want := range []string{"example.test/Extra", "NodeRestriction"} {
		if !strings.Contains(plugins, want) {
			t.Errorf("plugins are added to those of the default, %s is missing: %s", want, plugins)
		}
	}
	if exempt, _, _ := unstructured.NestedStringSlice(config, "admission", "pluginConfig", "PodSecurity", "configuration", "exemptions", "usernames"); len(exempt) != 1 {
		t.Errorf("configurations of plugins are merged, not replaced: %v", exempt)
	}

	if _, err := mergeConfig(observe.Merge(observed, map[string]any{"servicesSubnets": "172.30.0.0/16"})); err == nil || !strings.Contains(err.Error(), "servicesSubnets") {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestGracePeriod(t *testing.T) {
	for _, tt := range []struct {
		observed map[string]any
		want     int64
		invalid  bool
	}{
		{nil, 135, false},
		{map[string]any{gracePeriodKey: "15"}, 15, false},
		{map[string]any{gracePeriodKey: "15s"}, 0, true},
		{map[string]any{gracePeriodKey: int64(15)}, 0, true},
	} {
		if got, err := gracePeriod(tt.observed); got != tt.want || (err != nil) != tt.invalid {
			t.Errorf("%v: %d, %v; want %d", tt.observed, got, err, tt.want)
		}
	}
}
