// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func TestNetworkArguments(t *testing.T) {
	entry := func(cidr string, prefix uint32) configv1.ClusterNetworkEntry {
		return configv1.ClusterNetworkEntry{CIDR: cidr, HostPrefix: prefix}
	}
	four, six := entry("10.128.0.0/14", 23), entry("fd01::/48", 64)
	for name, test := range map[string]struct {
		network configv1.Network
		profile inputs.Profile
		want    []string
		err     error
	}{
		"the spec": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{four}, ServiceNetwork: []string{"172.30.0.0/16"}}},
			profile: inputs.OpenShift, want: []string{"--cluster-cidr=10.128.0.0/14", "--service-cluster-ip-range=172.30.0.0/16"},
		},
		"the status first": {
			network: configv1.Network{
				Spec:   configv1.NetworkSpec{ClusterNetwork: []configv1.ClusterNetworkEntry{four}, ServiceNetwork: []string{"172.30.0.0/16"}},
				Status: configv1.NetworkStatus{ClusterNetwork: []configv1.ClusterNetworkEntry{six}, ServiceNetwork: []string{"fd02::/112"}},
			},
			profile: inputs.OpenShift, want: []string{"--cluster-cidr=fd01::/48", "--service-cluster-ip-range=fd02::/112"},
		},
		"Kubernetes allocates": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{four}, ServiceNetwork: []string{"172.30.0.0/16"}}},
			profile: inputs.Kubernetes,
			want:    []string{"--cluster-cidr=10.128.0.0/14", "--node-cidr-mask-size=23", "--service-cluster-ip-range=172.30.0.0/16"},
		},
		"Kubernetes, both families": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{four, six}, ServiceNetwork: []string{"172.30.0.0/16", "fd02::/112"}}},
			profile: inputs.Kubernetes,
			want: []string{"--cluster-cidr=10.128.0.0/14,fd01::/48", "--node-cidr-mask-size-ipv4=23", "--node-cidr-mask-size-ipv6=64",
				"--service-cluster-ip-range=172.30.0.0/16,fd02::/112"},
		},
		"Kubernetes, the default size": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{entry("10.0.0.0/16", 0)}, ServiceNetwork: []string{"172.30.0.0/16"}}},
			profile: inputs.Kubernetes, want: []string{"--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=172.30.0.0/16"},
		},
		"Kubernetes, two of one family": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{four, entry("10.200.0.0/16", 24)}, ServiceNetwork: []string{"172.30.0.0/16"}}},
			profile: inputs.Kubernetes, err: ErrClusterNetwork,
		},
		"OpenShift, two of one family": {
			network: configv1.Network{Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{four, entry("10.200.0.0/16", 24)}, ServiceNetwork: []string{"172.30.0.0/16"}}},
			profile: inputs.OpenShift,
			want:    []string{"--cluster-cidr=10.128.0.0/14,10.200.0.0/16", "--service-cluster-ip-range=172.30.0.0/16"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := networkArguments(&test.network, test.profile)
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
		got, err := latencyArguments(profile)
		if diff := cmp.Diff(observe.Argument("node-monitor-grace-period", want), got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", profile, err, diff)
		}
	}
	if _, err := latencyArguments("Never"); !errors.Is(err, ErrLatencyProfile) {
		t.Errorf("error %v, want %v", err, ErrLatencyProfile)
	}
}

func TestObserveName(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	got, err := observeName(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s)...)), nil)
	if diff := cmp.Diff(observe.Argument("cluster-name", "example-x7k2p"), got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	s.Cluster.Infrastructure.Status.InfrastructureName = ""
	if _, err := observeName(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s)...)), nil); !errors.Is(err, ErrNoClusterName) {
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
