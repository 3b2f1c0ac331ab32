// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
)

func TestVersion(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if code := cli.Main([]string{"--version"}, streams); code != 0 || !strings.HasPrefix(out.String(), "kubectl sno version ") {
		t.Errorf("%d, %q", code, out)
	}
}

func TestManPages(t *testing.T) {
	folder := t.TempDir()
	if code := cli.Main([]string{"man", folder}, genericiooptions.NewTestIOStreamsDiscard()); code != 0 {
		t.Fatal(code)
	}
	for _, command := range runnable(cli.New(genericiooptions.NewTestIOStreamsDiscard())) {
		page, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(command.CommandPath(), " ", "-")+".1"))
		if err != nil || !strings.Contains(string(page), command.Short) {
			t.Errorf("%s: %v\n%s", command.CommandPath(), err, page)
		}
	}
}
