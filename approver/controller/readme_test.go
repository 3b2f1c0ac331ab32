package controller

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Every flag of the module is in the README, and every metric.
func TestReadmeFlags(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	NewModule().BindFlags(flags)
	flags.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(string(readme), "`--"+f.Name+"`") {
			t.Errorf("README.md lacks --%s", f.Name)
		}
	})
	for _, name := range []string{PendingRequests, OldestRequestAge, FirstEnd} {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("README.md lacks %s", name)
		}
	}
}
