// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/conformance/catalogue"
)

// TestGracePeriodIn reads the kubelet configuration in all encodings of Ignition.
func TestGracePeriodIn(t *testing.T) {
	const text = "kind: KubeletConfiguration\nshutdownGracePeriod: 1m30s\n"
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	for name, test := range map[string]struct {
		path, source, compression string
		want                      string
		wrong                     bool
	}{
		"plain":              {catalogue.KubeletFile, "data:,kind:%20KubeletConfiguration%0AshutdownGracePeriod:%201m30s", "", "1m30s", false},
		"base64":             {catalogue.KubeletFile, "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(text)), "", "1m30s", false},
		"packed":             {catalogue.KubeletFile, "data:;base64," + base64.StdEncoding.EncodeToString(packed.Bytes()), "gzip", "1m30s", false},
		"JSON":               {catalogue.KubeletFile, `data:,{"shutdownGracePeriod":"5s"}`, "", "5s", false},
		"not set":            {catalogue.KubeletFile, "data:,kind:%20KubeletConfiguration", "", "", false},
		"another file":       {"/etc/kubernetes/other.conf", "data:,shutdownGracePeriod:%201m30s", "", "", false},
		"another URL":        {catalogue.KubeletFile, "https://example.com/kubelet.conf", "", "", true},
		"no base64":          {catalogue.KubeletFile, "data:;base64,!", "", "", true},
		"not packed":         {catalogue.KubeletFile, "data:,x", "gzip", "", true},
		"no configuration":   {catalogue.KubeletFile, "data:,[1", "", "", true},
		"a number, not text": {catalogue.KubeletFile, "data:,shutdownGracePeriod:%20[]", "", "", true},
	} {
		rendered := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{
			map[string]any{"path": test.path, "contents": map[string]any{"source": test.source, "compression": test.compression}},
		}}}}}}
		if got, err := gracePeriodIn(rendered); got != test.want || (err != nil) != test.wrong {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := gracePeriodIn(&unstructured.Unstructured{Object: map[string]any{}}); got != "" || err != nil {
		t.Errorf("nothing: %q, %v", got, err)
	}
}
