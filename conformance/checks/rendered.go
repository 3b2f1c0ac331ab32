package checks

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	machineConfigGroup = "machineconfiguration.openshift.io"
	// controlPlanePool is the MachineConfigPool of control-plane nodes.
	controlPlanePool = "master"
	// kubeletFile is what kubelets are started with.
	kubeletFile = "/etc/kubernetes/kubelet.conf"
)

// Pool is a MachineConfigPool, and what its nodes' kubelets are told. Of the MachineConfig that says so nothing else is kept: it holds the cluster's pull secret.
type Pool struct {
	Name string
	// Labels are what a KubeletConfig chooses it by.
	Labels map[string]string
	// Rendered is the MachineConfig that its nodes have, status.configuration.name; empty where none has been rendered.
	Rendered string
	// ShutdownGracePeriod is what the kubelet's file in it says, such as 60s; empty where it says nothing.
	ShutdownGracePeriod string
}

// readPool reads the pool of the control plane. Nil: there is none.
func readPool(ctx context.Context, kube client.Client) (*Pool, error) {
	live, err := machineConfigObject(ctx, kube, "MachineConfigPool", controlPlanePool)
	if live == nil || err != nil {
		return nil, err
	}
	pool := &Pool{Name: live.GetName(), Labels: live.GetLabels()}
	if pool.Rendered, _, err = unstructured.NestedString(live.Object, "status", "configuration", "name"); err != nil || pool.Rendered == "" {
		return pool, err
	}
	rendered, err := machineConfigObject(ctx, kube, "MachineConfig", pool.Rendered)
	if rendered == nil || err != nil {
		return pool, err
	}
	if pool.ShutdownGracePeriod, err = gracePeriodIn(rendered); err != nil {
		return nil, fmt.Errorf("%w: MachineConfig %s: %w", ErrRead, pool.Rendered, err)
	}
	return pool, nil
}

// machineConfigObject returns nil where there is none.
func machineConfigObject(ctx context.Context, kube client.Client, kind, name string) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: machineConfigGroup, Version: "v1", Kind: kind})
	err := kube.Get(ctx, client.ObjectKey{Name: name}, live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: get %ss.%s: allow it, or choose checks that do without: %w", ErrForbidden, strings.ToLower(kind), machineConfigGroup, err)
	case err != nil:
		return nil, fmt.Errorf("%w: get %s %s: %w", ErrRead, kind, name, err)
	}
	return live, nil
}

// gracePeriodIn finds shutdownGracePeriod in the kubelet's file of a MachineConfig.
func gracePeriodIn(rendered *unstructured.Unstructured) (string, error) {
	files, _, err := unstructured.NestedSlice(rendered.Object, "spec", "config", "storage", "files")
	if err != nil {
		return "", err
	}
	for _, each := range files {
		file, _ := each.(map[string]any)
		if file["path"] != kubeletFile {
			continue
		}
		source, _, err := unstructured.NestedString(file, "contents", "source")
		if err != nil {
			return "", err
		}
		compression, _, err := unstructured.NestedString(file, "contents", "compression")
		if err != nil {
			return "", err
		}
		text, err := dataOf(source, compression)
		if err != nil {
			return "", fmt.Errorf("file %s: %w", kubeletFile, err)
		}
		var kubelet struct {
			ShutdownGracePeriod string `json:"shutdownGracePeriod"`
		}
		if err := yaml.Unmarshal(text, &kubelet); err != nil {
			// Not the parser's words, which quote the file.
			return "", fmt.Errorf("file %s is no configuration of a kubelet", kubeletFile) //nolint:err113 // named by the caller
		}
		return kubelet.ShutdownGracePeriod, nil
	}
	return "", nil
}

// dataOf decodes the contents of an Ignition file.
func dataOf(source, compression string) ([]byte, error) {
	header, data, found := strings.Cut(strings.TrimPrefix(source, "data:"), ",")
	if !found || !strings.HasPrefix(source, "data:") {
		return nil, fmt.Errorf("its contents are elsewhere") //nolint:err113 // named by the caller
	}
	text, err := []byte(nil), error(nil)
	if strings.HasSuffix(header, ";base64") {
		text, err = base64.StdEncoding.DecodeString(data)
	} else {
		var plain string
		plain, err = url.PathUnescape(data)
		text = []byte(plain)
	}
	if err != nil || compression != "gzip" {
		return text, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
