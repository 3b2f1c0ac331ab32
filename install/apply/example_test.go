// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/apply"
)

func ExampleRun() {
	folder := apply.Folder{Name: "manifests", FS: fstest.MapFS{"a.yaml": {Data: []byte("kind: ConfigMap\n")}}}
	_, err := apply.Run(context.Background(), apply.Options{
		Config: &rest.Config{Host: "http://127.0.0.1:6443"}, Folders: []apply.Folder{folder}, Interval: time.Second,
	}, nil)
	fmt.Println(errors.Is(err, apply.ErrFailed), errors.Is(err, apply.ErrManifest))
	// Output: true true
}
