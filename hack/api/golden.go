// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	added   = "+ "
	removed = "- "
)

// Golden is a golden file: lines, and their marks.
type Golden map[string]string

// Parse reads the text of a golden file.
func Parse(text string) Golden {
	golden := Golden{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark := ""
		if strings.HasPrefix(line, added) || strings.HasPrefix(line, removed) {
			mark = line[:2]
		}
		if line != "" {
			golden[line[len(mark):]] = mark
		}
	}
	return golden
}

// String returns the text of the file.
func (g Golden) String() string {
	var lines []string
	for line := range g {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(g[line] + line + "\n")
	}
	return text.String()
}

// Update returns the golden file for the lines of the code. A line of the last release that is gone stays, with a mark.
func (g Golden) Update(lines []string) Golden {
	updated := Golden{}
	for line, mark := range g {
		if mark != added {
			updated[line] = removed
		}
	}
	for _, line := range lines {
		if _, known := updated[line]; known {
			updated[line] = ""
		} else {
			updated[line] = added
		}
	}
	return updated
}

// Release returns the golden file after a release: without marks, and without the lines that are gone.
func (g Golden) Release() Golden {
	released := Golden{}
	for line, mark := range g {
		if mark != removed {
			released[line] = ""
		}
	}
	return released
}

// Changes returns the lines, with their marks, that are not in the other file with the same mark, sorted.
func (g Golden) Changes(from Golden) (lines []string) {
	for line, mark := range g {
		if before, known := from[line]; !known || before != mark {
			lines = append(lines, mark+line)
		}
	}
	for line, mark := range from {
		if _, known := g[line]; !known {
			lines = append(lines, "no longer "+mark+line)
		}
	}
	slices.Sort(lines)
	return lines
}

// Lacks returns the lines of a release that are missing or new in this file.
func (g Golden) Lacks(release Golden) (lines []string) {
	for line := range release {
		if mark, known := g[line]; !known || mark == added {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

var (
	member   = regexp.MustCompile(`^pkg (\S+), type (\w+) (?:struct|interface), (?:embedded (?:[^\s[]*[./*])?)?(\w+)`)
	method   = regexp.MustCompile(`^pkg (\S+), method \(\*?(\w+)\) (\w+)`)
	declared = regexp.MustCompile(`^pkg (\S+), (?:const|var|func|type) (\w+)()`)
)

// Unmentioned returns the identifiers that are gone or changed since the last release and that the text does not
// mention as package.Name or package.Type.Member. A type stands for its members.
func (g Golden) Unmentioned(text string) (missing []string) {
	for line, mark := range g {
		if mark != removed {
			continue
		}
		name, pattern := identifier(line)
		if !regexp.MustCompile(`\b` + pattern + `(?:[^\w.]|\.\W|\.?$)`).MatchString(text) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// identifier returns the name of a line's declaration, and an expression for it and the type that it belongs to.
func identifier(line string) (name, pattern string) {
	for _, form := range []*regexp.Regexp{member, method, declared} {
		match := form.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name = path.Base(match[1]) + "." + match[2]
		pattern = regexp.QuoteMeta(name)
		if match[3] != "" {
			return name + "." + match[3], pattern + `(?:\.` + match[3] + `)?`
		}
		return name, pattern
	}
	return line, regexp.QuoteMeta(line)
}

// File is the name of a library's golden file.
func File(dir string) string { return fmt.Sprintf("hack/api/%s.txt", dir) }
