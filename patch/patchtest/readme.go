package patchtest

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ReadmeFlags compares the flags of a program with those that the section "Flags" of its module's README names: all of them, and no other.
func ReadmeFlags(t testing.TB, path string, flags *flag.FlagSet) {
	t.Helper()
	readme, err := os.ReadFile(path) //nolint:gosec // the test's own module
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "## Flags")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatalf("%s has no section of flags with another one after it", path)
	}
	var got, want []string
	for _, row := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	flags.VisitAll(func(f *flag.Flag) { want = append(want, f.Name) })
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags in %s (-want +got):\n%s", path, diff)
	}
}
