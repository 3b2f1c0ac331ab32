// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func TestNetworkArguments(t *testing.T) {
	const (
		four = `{cidr: 10.128.0.0/14, hostPrefix: 23}`
		six  = `{cidr: "fd01::/48", hostPrefix: 64}`
		two  = `{spec: {clusterNetwork: [` + four + `, {cidr: 10.200.0.0/16, hostPrefix: 24}], serviceNetwork: [172.30.0.0/16]}}`
	)
	for name, test := range map[string]struct {
		profile inputs.Profile
		network string
		want    []string
		err     error
	}{
		"the spec": {
			inputs.OpenShift, `{spec: {clusterNetwork: [` + four + `], serviceNetwork: [172.30.0.0/16]}}`,
			[]string{"--cluster-cidr=10.128.0.0/14", "--service-cluster-ip-range=172.30.0.0/16"}, nil,
		},
		"the status first": {
			inputs.OpenShift,
			`{spec: {clusterNetwork: [` + four + `], serviceNetwork: [172.30.0.0/16]}, status: {clusterNetwork: [` + six + `], serviceNetwork: ["fd02::/112"]}}`,
			[]string{"--cluster-cidr=fd01::/48", "--service-cluster-ip-range=fd02::/112"}, nil,
		},
		"Kubernetes allocates": {
			inputs.Kubernetes, `{spec: {clusterNetwork: [` + four + `], serviceNetwork: [172.30.0.0/16]}}`,
			[]string{"--cluster-cidr=10.128.0.0/14", "--node-cidr-mask-size=23", "--service-cluster-ip-range=172.30.0.0/16"}, nil,
		},
		"Kubernetes, both families": {
			inputs.Kubernetes, `{spec: {clusterNetwork: [` + four + `, ` + six + `], serviceNetwork: [172.30.0.0/16, "fd02::/112"]}}`,
			[]string{"--cluster-cidr=10.128.0.0/14,fd01::/48", "--node-cidr-mask-size-ipv4=23", "--node-cidr-mask-size-ipv6=64",
				"--service-cluster-ip-range=172.30.0.0/16,fd02::/112"}, nil,
		},
		"Kubernetes, the default size": {
			inputs.Kubernetes, `{spec: {clusterNetwork: [{cidr: 10.0.0.0/16}], serviceNetwork: [172.30.0.0/16]}}`,
			[]string{"--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=172.30.0.0/16"}, nil,
		},
		"Kubernetes, two of one family": {inputs.Kubernetes, two, nil, ErrClusterNetwork},
		"OpenShift, two of one family": {
			inputs.OpenShift, two, []string{"--cluster-cidr=10.128.0.0/14,10.200.0.0/16", "--service-cluster-ip-range=172.30.0.0/16"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var network configv1.Network
			if err := yaml.UnmarshalStrict([]byte(test.network), &network); err != nil {
				t.Fatal(err)
			}
			config, err := networkArguments(&network, test.profile)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			got, err := observe.Flags(config, "extendedArguments")
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLatencyArguments(t *testing.T) {
	for profile, want := range map[configv1.WorkerLatencyProfileType]string{
		"": "40s", configv1.DefaultUpdateDefaultReaction: "40s", configv1.MediumUpdateAverageReaction: "2m0s", configv1.LowUpdateSlowReaction: "5m0s",
	} {
		got, err := latencyArguments(&configv1.Node{Spec: configv1.NodeSpec{WorkerLatencyProfile: profile}})
		if diff := cmp.Diff(observe.Argument("node-monitor-grace-period", want), got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", profile, err, diff)
		}
	}
	if _, err := latencyArguments(&configv1.Node{Spec: configv1.NodeSpec{WorkerLatencyProfile: "Never"}}); !errors.Is(err, ErrLatencyProfile) {
		t.Errorf("error %v, want %v", err, ErrLatencyProfile)
	}
}

func TestNameArguments(t *testing.T) {
	got, err := nameArguments(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{InfrastructureName: "example-x7k2p"}})
	if diff := cmp.Diff(observe.Argument("cluster-name", "example-x7k2p"), got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, err := nameArguments(&configv1.Infrastructure{}); !errors.Is(err, ErrNoClusterName) {
		t.Errorf("error %v, want %v", err, ErrNoClusterName)
	}
}

// kube-controller-manager would fail to read an empty bundle.
func TestObserveServiceCA(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	for bundle, want := range map[string]map[string]any{
		"":    {},
		"pem": {"serviceServingCert": map[string]any{"certFile": "/etc/kubernetes/static-pod-resources/configmaps/service-ca/ca-bundle.crt"}},
	} {
		ca := fixture.ConfigMap(namespace, "service-ca", map[string]string{"ca-bundle.crt": bundle})
		got, err := observeServiceCA(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s, ca)...)), nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: error %v (-want +got):\n%s", bundle, err, diff)
		}
	}
}

// A certificate may be valid as long as its CA (U-REN-13).
func TestDefaults(t *testing.T) {
	for _, test := range []struct {
		profile  inputs.Profile
		validity time.Duration
		duration string
		cidrs    string
	}{
		{inputs.OpenShift, 10 * 365 * 24 * time.Hour, "87600h0m0s", "false"},
		{inputs.Kubernetes, 90*time.Minute + time.Second, "1h30m1s", "true"},
	} {
		s := fixture.Settings(test.profile, "192.168.2.1")
		s.Validity = test.validity
		arguments := defaults(s)["extendedArguments"].(map[string]any)
		if diff := cmp.Diff([]any{test.duration}, arguments["cluster-signing-duration"]); diff != "" {
			t.Errorf("%s: cluster-signing-duration (-want +got):\n%s", test.profile, diff)
		}
		if diff := cmp.Diff([]any{test.cidrs}, arguments["allocate-node-cidrs"]); diff != "" {
			t.Errorf("%s: allocate-node-cidrs (-want +got):\n%s", test.profile, diff)
		}
		_, recycler := arguments["pv-recycler-pod-template-filepath-nfs"]
		if want := test.profile == inputs.OpenShift; recycler != want {
			t.Errorf("%s: recycler pod %t, want %t", test.profile, recycler, want)
		}
	}
}
