package cli_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
)

// reference is where the generated pages are, one for each verb.
const reference = "../docs/kubectl-sno"

// The pages say what the program says about itself. -update writes them anew.
func TestReference(t *testing.T) {
	root := cli.New(genericiooptions.NewTestIOStreamsDiscard())
	root.DisableAutoGenTag = true
	pages := map[string]string{}
	for _, command := range append(verbs(root), root) {
		var page bytes.Buffer
		if err := doc.GenMarkdown(command, &page); err != nil {
			t.Fatal(err)
		}
		pages[fileOf(command)] = page.String()
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		rewrite(t, pages)
	}
	there, err := filepath.Glob(reference + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range there {
		there[i] = filepath.Base(there[i])
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(pages)), slices.Sorted(slices.Values(there))); diff != "" {
		t.Errorf("pages (-generated +in %s); run with -update:\n%s", reference, diff)
	}
	for name, page := range pages {
		text, err := os.ReadFile(filepath.Join(reference, name))
		if err != nil {
			continue // it is in the list above
		}
		if diff := cmp.Diff(strings.Split(page, "\n"), strings.Split(string(text), "\n")); diff != "" {
			t.Errorf("%s (-generated +there); run with -update:\n%s", name, diff)
		}
	}
}

func fileOf(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "_") + ".md"
}

func rewrite(t *testing.T, pages map[string]string) {
	t.Helper()
	if err := os.MkdirAll(reference, 0o755); err != nil {
		t.Fatal(err)
	}
	old, err := filepath.Glob(reference + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if _, kept := pages[filepath.Base(file)]; !kept {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(reference, name), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
