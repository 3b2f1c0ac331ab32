// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/openshift/api/config/v1"
)

func TestServiceHostnames(t *testing.T) {
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, tt := range []struct {
		name         string
		spec, status []string
		want         []string
		invalid      bool
	}{
		{name: "IPv4", spec: []string{"172.30.0.0/16"}, want: append([]string{"172.30.0.1"}, names...)},
		{name: "IPv6", spec: []string{"fd02::/112"}, want: append([]string{"fd02::1"}, names...)},
		{name: "both", spec: []string{"172.30.0.0/16", "fd02::/112"}, want: append([]string{"172.30.0.1", "fd02::1"}, names...)},
		{name: "an address of the range", spec: []string{"10.0.3.7/22"}, want: append([]string{"10.0.0.1"}, names...)},
		{name: "the status has another", spec: []string{"172.30.0.0/16"}, status: []string{"10.96.0.0/12"}, want: append([]string{"10.96.0.1"}, names...)},
		{name: "none", invalid: true},
		{name: "no range", spec: []string{"172.30.0.0"}, invalid: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ServiceHostnames(&configv1.Network{
				Spec: configv1.NetworkSpec{ServiceNetwork: tt.spec}, Status: configv1.NetworkStatus{ServiceNetwork: tt.status},
			})
			if (err != nil) != tt.invalid {
				t.Fatalf("error: %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocalHostnames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ranges []string
		want   []string
	}{
		{"IPv4", []string{"172.30.0.0/16"}, []string{"127.0.0.1", "localhost"}},
		{"IPv6", []string{"fd02::/112"}, []string{"127.0.0.1", "::1", "localhost"}},
		{"both", []string{"172.30.0.0/16", "fd02::/112"}, []string{"127.0.0.1", "::1", "localhost"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := LocalHostnames(&configv1.Network{Spec: configv1.NetworkSpec{ServiceNetwork: tt.ranges}})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadBalancerHostnames(t *testing.T) {
	for _, tt := range []struct {
		name, url string
		want      []string
		err       error
	}{
		{name: "name", url: "https://api-int.example.test:6443", want: []string{"api-int.example.test"}},
		{name: "IPv4 address", url: "https://192.168.126.10:6443", want: []string{"192.168.126.10"}},
		{name: "IPv6 address", url: "https://[fd00::10]:6443", want: []string{"fd00::10"}},
		{name: "none", err: ErrMissing},
		{name: "no scheme", url: "api-int.example.test:6443", err: ErrInvalid},
		{name: "not encrypted", url: "http://api-int.example.test:6443", err: ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			names, err := hostnames(&configv1.Infrastructure{}, "apiServerURL", tt.url)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
