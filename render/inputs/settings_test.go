// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1 "github.com/openshift/api/config/v1"
)

func golden(t *testing.T, folder string, changes ...change) *Cluster {
	t.Helper()
	cluster, err := Read(changed(t, folder, changes...), testNow)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestSettings(t *testing.T) {
	t.Parallel()
	cluster := golden(t, "three-nodes")
	settings, err := cluster.Settings(Options{Profile: Kubernetes, Version: "v1.36.3", Images: map[string]string{"kube-scheduler": "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		Profile: Kubernetes, Version: "1.36.3", Validity: DefaultValidity,
		Images: map[string]string{
			"etcd": DefaultEtcdImage, "kube-apiserver": "registry.k8s.io/kube-apiserver:v1.36.3",
			"kube-controller-manager": "registry.k8s.io/kube-controller-manager:v1.36.3", "kube-scheduler": "mine",
		},
		Nodes: []Node{
			{"master-0", []netip.Addr{netip.MustParseAddr("192.168.126.10")}},
			{"master-1", []netip.Addr{netip.MustParseAddr("192.168.126.11")}},
			{"master-2", []netip.Addr{netip.MustParseAddr("192.168.126.12")}},
		},
	}
	if diff := cmp.Diff(want, settings, cmpopts.IgnoreFields(Settings{}, "Cluster"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}

	_, err = cluster.Settings(Options{Profile: OpenShift, Version: "latest", Validity: time.Second, Images: map[string]string{"etcd": "e", "hyperkube": ""}})
	wantError := "validity: Invalid value: \"1s\": it is too short; at least 5m0s\n" +
		"version: Invalid value: \"latest\": write a version of Kubernetes, such as 1.35.2\n" +
		"images: Required value: there is none for cluster-etcd-operator, cluster-kube-apiserver-operator, cluster-kube-controller-manager-operator, " +
		"cluster-kube-scheduler-operator, cluster-policy-controller, hyperkube, tools; give the image references of a release payload"
	if err == nil || err.Error() != wantError {
		t.Errorf("got:\n%v\nwant:\n%s", err, wantError)
	}
	if _, err = cluster.Settings(Options{Profile: "plain", Version: "1.35.2"}); err == nil {
		t.Errorf("unknown profile: %v", err)
	}
}

// An empty status gets the gates of the feature set for the release; another status is not changed.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	enabled := func(options Options, changes ...change) (string, []string) {
		cluster := golden(t, "one-node", changes...)
		settings, err := cluster.Settings(options)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, gate := range settings.Cluster.FeatureGate.Status.FeatureGates[0].Enabled {
			names = append(names, string(gate.Name))
		}
		return settings.Cluster.FeatureGate.Status.FeatureGates[0].Version, names
	}
	options := Options{Profile: Kubernetes, Version: "1.35.2"}
	version, standard := enabled(options)
	if version != unreleased || len(standard) == 0 || !slices.IsSorted(standard) {
		t.Errorf("%s: %v", version, standard)
	}
	options.Release = "4.21.3"
	version, preview := enabled(options, change{"99_feature-gate.yaml", "spec: {}", "spec: {featureSet: TechPreviewNoUpgrade}"})
	if version != "4.21.3" || len(preview) <= len(standard) {
		t.Errorf("%s: %d gates of the preview, %d by default", version, len(preview), len(standard))
	}
	version, given := enabled(options, change{"99_feature-gate.yaml", "spec: {}",
		"spec: {}\nstatus: {featureGates: [{version: 4.20.1, enabled: [{name: Mine}], disabled: []}]}"})
	if diff := cmp.Diff([]string{"4.20.1", "Mine"}, append([]string{version}, given...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	options.Release = "next"
	if _, err := golden(t, "one-node").Settings(options); err == nil {
		t.Errorf("release without a number: %v", err)
	}
}

// R-REN-11.
func TestSettle(t *testing.T) {
	t.Parallel()
	plain := golden(t, "one-node")
	wantNetwork := configv1.NetworkStatus{
		ClusterNetwork: []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}}, ServiceNetwork: []string{"172.30.0.0/16"},
		NetworkType: "OVNKubernetes",
	}
	if diff := cmp.Diff(wantNetwork, plain.Network.Status); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(configv1.ProxyStatus{}, plain.Proxy.Status); diff != "" {
		t.Errorf("no proxy (-want +got):\n%s", diff)
	}
	proxied := golden(t, "one-node", change{"cluster-proxy-01-config.yaml", "spec:\n", "spec:\n  httpsProxy: http://proxy:3128\n  noProxy: .example.com, 10.0.0.1\n"})
	want := configv1.ProxyStatus{
		HTTPSProxy: "http://proxy:3128",
		NoProxy: ".cluster.local,.example.com,.svc,10.0.0.1,10.128.0.0/14,127.0.0.1,172.30.0.0/16,192.168.126.10," +
			"api-int.sno.example.com,localhost",
	}
	if diff := cmp.Diff(want, proxied.Proxy.Status); diff != "" {
		t.Errorf("proxy (-want +got):\n%s", diff)
	}
}

func TestOthers(t *testing.T) {
	t.Parallel()
	cluster := golden(t, "one-node", remove("cluster-config.yaml"),
		add("a.json", "{\"apiVersion\": \"example.com/v1\",\n\t\"kind\": \"Thing\", \"metadata\": {\"name\": \"a\"}, \"big\": 9007199254740993, \"list\": [1, {}]}"),
		add("b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: c}\ndata: {x: b2xk, z: eQ==}\nstringData: {x: new}\n"))
	want := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"},
			"big": int64(9007199254740993), "list": []any{int64(1), map[string]any{}}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "b", "namespace": "c"},
			"data": map[string]any{"x": "bmV3", "z": "eQ=="}}},
	}
	if diff := cmp.Diff(want, cluster.Others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

func TestReadImageReferences(t *testing.T) {
	t.Parallel()
	const stream = `{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "4.21.3"}, "spec": {"tags": [
{"name": "etcd", "from": {"kind": "DockerImage", "name": "example.com/r@sha256:1"}},
{"name": "hyperkube", "annotations": {"io.openshift.build.versions": "kubernetes=1.35.2,other=2"}, "from": {"kind": "DockerImage", "name": "example.com/r@sha256:2"}}]}}`
	payload, err := ReadImageReferences(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	want := &Payload{Release: "4.21.3", Version: "1.35.2", Images: map[string]string{"etcd": "example.com/r@sha256:1", "hyperkube": "example.com/r@sha256:2"}}
	if diff := cmp.Diff(want, payload); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"no YAML":         "{",
		"another kind":    strings.Replace(stream, `"ImageStream"`, `"Image"`, 1),
		"no tags":         "kind: ImageStream",
		"from a tag":      strings.Replace(stream, "DockerImage", "ImageStreamTag", 1),
		"two of one name": strings.Replace(stream, `"name": "etcd"`, `"name": "hyperkube"`, 1),
	} {
		if _, err := ReadImageReferences(strings.NewReader(text)); !errors.Is(err, ErrNoImageReferences) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteMarkdown(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := WriteMarkdown(&text, Fields); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 5 {
			t.Errorf("a cell with a bar: %s", line)
		}
	}
	for _, field := range Fields {
		end := " | " + string(field.Effect) + " | " + strings.Join(field.Values, ", ") + " | " + field.Reason + " |"
		if !slices.ContainsFunc(strings.Split(text.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "`"+field.Path+"`") && strings.HasSuffix(line, end)
		}) {
			t.Errorf("%s %s is missing", field.Resource, field.Path)
		}
		for _, refused := range field.RefusedValues {
			if !strings.Contains(text.String(), "| | refused | "+refused.Value+" | "+refused.Reason+" |\n") {
				t.Errorf("%s %s: %s is missing", field.Resource, field.Path, refused.Value)
			}
		}
	}
	if strings.Count(text.String(), "\n## ") != len(required)-1 {
		t.Errorf("%d sections", strings.Count(text.String(), "\n## ")+1)
	}
}
