// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestParseEndpoints(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " , ": nil,
		"10.0.0.1:2379":                          {"https://10.0.0.1:2379"},
		"https://a:2379, https://[fd00::1]:2379": {"https://a:2379", "https://[fd00::1]:2379"},
		"http://localhost:2379":                  {"http://localhost:2379"},
		"unix:///run/etcd.sock":                  {"unix:///run/etcd.sock"},
	} {
		got, err := parseEndpoints(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"10.0.0.1", "https://10.0.0.1", "ftp://x:1", "https://:2379", "unix://", "https://a:2379,b", "https://a:x"} {
		if got, err := parseEndpoints(text); !errors.Is(err, errEndpoint) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestEndpointsOf(t *testing.T) {
	var nodes []corev1.Node
	for _, address := range []string{"10.0.0.3", "fd00::2", "10.0.0.1", "10.0.0.3"} {
		nodes = append(nodes, corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "x"}, {Type: corev1.NodeInternalIP, Address: address}}}})
	}
	if diff := cmp.Diff([]string{"https://10.0.0.1:2379", "https://10.0.0.3:2379", "https://[fd00::2]:2379"}, endpointsOf(nodes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := (&patcher{}).readMembers(t.Context(), nil, nil, nil); !errors.Is(err, errNoEndpoint) {
		t.Errorf("without an address: %v, %v", got, err)
	}
}
