// SPDX-License-Identifier: Apache-2.0

package ignition_test

import (
	"fmt"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition"
)

// An addition to a machine-config server's config must not conflict with it.
func ExampleEnrich() {
	master := []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,hello"}}]}}`)
	var b ignition.Builder
	b.AddFile("the settings", files.File{Path: "etc/kubernetes/bootstrap-configs/sno-install.yaml", Mode: 0o600, Content: []byte("name: master0")})
	text, err := ignition.Enrich("master.ign", master, &b)
	parsed, _ := ignition.Parse("enriched", text)
	fmt.Println(parsed.Paths(), err)

	b.AddFile("--extra", files.File{Path: "etc/motd", Mode: 0o644, Content: []byte("welcome")})
	_, err = ignition.Enrich("master.ign", master, &b)
	fmt.Println(err)
	// Output:
	// [/etc/kubernetes/bootstrap-configs/sno-install.yaml /etc/motd] <nil>
	// path /etc/motd: defined by two sources: master.ign and --extra
}
