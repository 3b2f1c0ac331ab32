// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
)

const machineConfigGroup = "machineconfiguration.openshift.io"

// ReadPool returns the control plane's pool, or nil if there is none.
func ReadPool(ctx context.Context, kube client.Client) (*catalogue.Pool, error) {
	r := reader{ctx: ctx, kube: kube, state: &catalogue.State{Missing: map[string]bool{}}}
	live := r.machineConfiguration("MachineConfigPool", catalogue.ControlPlanePool)
	if live == nil {
		return nil, errors.Join(r.errs...)
	}
	var err error
	pool := &catalogue.Pool{Name: live.GetName(), Labels: live.GetLabels()}
	if pool.Rendered, _, err = unstructured.NestedString(live.Object, "status", "configuration", "name"); err != nil || pool.Rendered == "" {
		return pool, err
	}
	rendered := r.machineConfiguration("MachineConfig", pool.Rendered)
	if rendered == nil {
		return pool, errors.Join(r.errs...)
	}
	if pool.ShutdownGracePeriod, err = gracePeriodIn(rendered); err != nil {
		return nil, fmt.Errorf("%w: MachineConfig %s: %w", catalogue.ErrRead, pool.Rendered, err)
	}
	return pool, nil
}

func (r *reader) machineConfiguration(kind, name string) *unstructured.Unstructured {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: machineConfigGroup, Version: "v1", Kind: kind})
	return one(r, strings.ToLower(kind)+"s."+machineConfigGroup, "", name, live)
}

func gracePeriodIn(rendered *unstructured.Unstructured) (string, error) {
	files, _, err := unstructured.NestedSlice(rendered.Object, "spec", "config", "storage", "files")
	if err != nil {
		return "", err
	}
	for _, each := range files {
		file, _ := each.(map[string]any)
		if file["path"] != catalogue.KubeletFile {
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
			return "", fmt.Errorf("file %s: %w", catalogue.KubeletFile, err)
		}
		var kubelet struct {
			ShutdownGracePeriod string `json:"shutdownGracePeriod"`
		}
		if err := yaml.Unmarshal(text, &kubelet); err != nil {
			// The parser's error quotes the file.
			return "", fmt.Errorf("file %s is not a kubelet configuration", catalogue.KubeletFile) //nolint:err113 // the caller wraps it
		}
		return kubelet.ShutdownGracePeriod, nil
	}
	return "", nil
}

func dataOf(source, compression string) ([]byte, error) {
	header, data, found := strings.Cut(strings.TrimPrefix(source, "data:"), ",")
	if !found || !strings.HasPrefix(source, "data:") {
		return nil, fmt.Errorf("its contents are not in a data URL") //nolint:err113 // the caller wraps it
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
