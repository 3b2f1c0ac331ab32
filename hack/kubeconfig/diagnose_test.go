// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = `apiVersion: v1
kind: Config
current-context: admin
contexts:
- name: admin
  context: {cluster: edge, user: admin}
clusters:
- name: other
  cluster: {server: "https://127.0.0.1:1"}
- name: edge
  cluster: {server: %q}
`

func TestDiagnose(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	good := "https://" + listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bad := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, test := range map[string]struct{ file, content, want string }{
		"a cluster that answers": {content: fmt.Sprintf(text, good)},
		"unreachable":            {content: fmt.Sprintf(text, bad), want: "its server " + bad + " cannot be reached: connect: connection refused"},
		"behind a proxy":         {content: strings.Replace(fmt.Sprintf(text, bad), bad+`"`, bad+`", proxy-url: "http://127.0.0.1:1"`, 1)},
		"missing":                {file: filepath.Join(folder, "nowhere"), want: "there is no such file"},
		"a directory":            {file: folder, want: "is a directory"},
		"not named":              {want: "KUBECONFIG is empty"},
		"not YAML":               {content: "clusters: 7\n", want: "is no kubeconfig"},
		"no current context":     {content: strings.Replace(fmt.Sprintf(text, good), "current-context: admin", "current-context: gone", 1), want: `current-context "gone" has no server`},
		"no address":             {content: fmt.Sprintf(text, "edge"), want: "it is not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			file := test.file
			if test.content != "" {
				file = filepath.Join(t.TempDir(), "kubeconfig")
				if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := Diagnose(t.Context(), file)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one line with %q", got, test.want)
			}
		})
	}
}
