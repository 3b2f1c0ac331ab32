package controller

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/patch/manager"
)

// Every flag of the program is in the README, and no other.
func TestReadmeFlags(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "## Flags")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("README.md has no section of flags")
	}
	var got, want []string
	for _, row := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	(&manager.Options{}).BindFlags(flags)
	(&Module{}).BindFlags(flags)
	flags.VisitAll(func(f *flag.Flag) { want = append(want, f.Name) })
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags in README.md (-want +got):\n%s", diff)
	}
}
