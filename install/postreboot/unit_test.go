// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/solonode/sno/install/node"
)

// The unit is removed after the command has succeeded, also without the program, and remains after a failure
// (R-BIP-18).
func TestUnitRemovesItself(t *testing.T) {
	for name, test := range map[string]struct {
		program string
		inImage bool
		removed bool
	}{
		"succeeds":          {"#!/bin/sh\nrm $0\n", false, true},
		"stays in an image": {"#!/bin/sh\n", true, true},
		"killed before":     {"", false, true},
		"fails":             {"#!/bin/sh\nexit 3\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{T: t, root: t.TempDir()}
			s := node.Settings{ProgramInImage: test.inImage}
			unit, link := node.UnitDir+"/"+node.PostRebootUnit, node.UnitDir+"/multi-user.target.wants/"+node.PostRebootUnit
			m.put(unit, Unit(s))
			m.put(link, "")
			program := s.Executable()
			if test.program != "" {
				m.put(program, test.program)
				m.must(os.Chmod(filepath.Join(m.root, program), 0o700))
			}
			m.put("bin/systemctl", "#!/bin/sh\necho \"$@\" >>"+m.root+"/calls\n")
			m.must(os.Chmod(filepath.Join(m.root, "bin/systemctl"), 0o700))

			line := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -ec '(.*)'$`).FindStringSubmatch(Unit(s))
			if line == nil {
				t.Fatalf("no command in\n%s", Unit(s))
			}
			script := strings.NewReplacer("/"+program, m.root+"/"+program, "/"+node.UnitDir, m.root+"/"+node.UnitDir).Replace(line[1])
			command := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
			command.Env = []string{"PATH=" + m.root + "/bin:/usr/bin:/bin"}
			if out, err := command.CombinedOutput(); (err == nil) != test.removed {
				t.Errorf("%v: %s", err, out)
			}
			left := m.tree()
			_, hasUnit := left[unit]
			_, hasLink := left[link]
			if hasUnit == test.removed || hasLink == test.removed || (left["calls"] == "daemon-reload\n") != test.removed {
				t.Errorf("remaining: %v", left)
			}
		})
	}
}

// systemd would end a unit that is still starting as failed when its file is removed (U-INS-31).
func TestUnitIsStartedAtOnce(t *testing.T) {
	if !strings.Contains(Unit(node.Settings{}), "\nType=exec\n") {
		t.Error(Unit(node.Settings{}))
	}
}
