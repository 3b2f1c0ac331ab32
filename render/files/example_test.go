// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/render/files"
)

func ExampleWrite() {
	parent, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent) //nolint:errcheck // only an example

	out := filepath.Join(parent, "out")
	content := []files.File{{Path: "etc/kubernetes/manifests/etcd-pod.yaml", Mode: 0o600, Content: []byte("kind: Pod\n")}}
	fmt.Println(files.Write(out, content))
	fmt.Println(errors.Is(files.Write(out, content), files.ErrNotEmpty))
	fmt.Println(files.Replace(out, content))
	// Output:
	// <nil>
	// true
	// <nil>
}
