// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
)

func TestFindWords(t *testing.T) {
	// Put together here, so that this file does not hold what the check forbids.
	home, registry, sleep, leftover := "/ho"+"me/ann", "proxy."+"golang.org", "time."+"Sleep(1)", "TO"+"DO"
	tests := map[string]struct {
		file, text string
		want       int
	}{
		"home folder":               {"README.md", "see " + home + "/src", 1},
		"quoted":                    {"a.go", `x := "` + "/wo" + `rk/main"`, 1},
		"in an assignment":          {"Makefile", "DIR=" + "/tm" + "p/x", 1},
		"root's folder":             {"a.yaml", "path: " + "/ro" + "ot/go", 1},
		"part of a URL":             {"README.md", "example.com/wo" + "rk/x and a/home/page", 0},
		"below tmp":                 {"a.go", `x := "/` + `tmp/sno"`, 1},
		"tmp of every container":    {"a.go", `MountPath: "/` + `tmp"`, 0},
		"another absolute path":     {"a.yaml", "path: /etc/kubernetes and /var/run and /rootfs", 0},
		"registry":                  {"a.sh", "GOPROXY=https://" + registry, 1},
		"similar name":              {"a.md", "golang.org/x/mod and registry.example.com", 0},
		"server of releases":        {"a.md", "https://dl.k8s.io, a default that a setting replaces", 0},
		"sleep":                     {"a.go", "\t" + sleep, 1},
		"sleep in prose":            {"a.md", "no " + sleep + " anywhere", 0},
		"leftover":                  {"a.go", "// " + leftover + " later", 1},
		"leftover with name":        {"a.go", "x := 1 // see " + leftover + "(ann)", 1},
		"leftover in a shell file":  {"Makefile", "# " + leftover + ": later", 1},
		"speaking of leftovers":     {"a.go", "// The test assumes it, with a " + leftover + " to make sure", 0},
		"context":                   {"a.go", "context." + leftover + "()", 1},
		"two faults on two lines":   {"a.go", sleep + "\n" + sleep, 2},
		"binary file":               {"a.go", sleep + "\x00", 0},
		"nothing wrong in the file": {"a.go", "package a\n", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			faults := findWords(test.file, splitText([]byte(test.text)))
			if len(faults) != test.want {
				t.Errorf("%q: got %d faults, want %d: %v", test.text, len(faults), test.want, faults)
			}
			for _, fault := range faults {
				if !strings.HasPrefix(fault, test.file+":") {
					t.Errorf("fault %q must begin with file and line", fault)
				}
			}
		})
	}
}

func TestLongComments(t *testing.T) {
	most := "// " + strings.Repeat("a", maxComment-3)
	tests := map[string]struct {
		file, text string
		want       int
	}{
		"as long as a line may be": {"a.go", most, 0},
		"one more":                 {"a.go", most + "a", 1},
		"one more by a tab":        {"a.go", "\t" + most, 1},
		"characters, not bytes":    {"a.go", most[:len(most)-1] + "ä", 0},
		"code":                     {"a.go", "x := 1 " + most + "a", 0},
		"code in a comment":        {"a.go", "//\t" + most + "a", 0},
		"a marker":                 {"a.go", "// +" + most, 0},
		"output of an example":     {"a_test.go", "\t// Output:\n\t" + most, 0},
		"after an output":          {"a_test.go", "\t// Output:\n}\n\t" + most, 1},
		"two":                      {"a.go", most + "a\n" + most + "a", 2},
		"another language":         {"a.md", most + "a", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if faults := longComments(test.file, strings.Split(test.text, "\n")); len(faults) != test.want {
				t.Errorf("got %d faults, want %d: %v", len(faults), test.want, faults)
			}
		})
	}
}

func TestMissingLicense(t *testing.T) {
	tests := map[string]struct {
		file, text string
		want       int
	}{
		"first":              {"a.go", license + "\n\npackage a\n", 0},
		"none":               {"a.go", "package a\n", 1},
		"Godoc of a package": {"a.go", license + "\npackage a\n", 1},
		"not first":          {"a.go", "\n" + license + "\n\npackage a\n", 1},
		"another language":   {"a.sh", "#!/bin/sh\n", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if faults := missingLicense(test.file, strings.Split(test.text, "\n")); len(faults) != test.want {
				t.Errorf("got %d faults, want %d: %v", len(faults), test.want, faults)
			}
		})
	}
}
