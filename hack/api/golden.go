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

// Differences returns the marked lines with their marks, sorted by the line.
func (g Golden) Differences() (lines []string) {
	for line := range strings.Lines(g.String()) {
		if strings.HasPrefix(line, added) || strings.HasPrefix(line, removed) {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

var declared = regexp.MustCompile(`^pkg (\S+), (?:(?:const|var|func|type) (\w+)(?:.* (?:struct|interface), (?:embedded \S*?)?(\w+))?|method \(\*?(\w+)\) (\w+))`)

// Unmentioned returns the identifiers that are gone or changed since the last release and that the text does not mention as
// package.Name or package.Type.Member. A type stands for its members.
func (g Golden) Unmentioned(text string) (missing []string) {
	for line, mark := range g {
		if mark != removed {
			continue
		}
		match := declared.FindStringSubmatch(line)
		if match == nil {
			missing = append(missing, line)
			continue
		}
		name := path.Base(match[1]) + "." + match[2] + match[4]
		member := match[3] + match[5]
		pattern := `\b` + regexp.QuoteMeta(name)
		if member != "" {
			pattern += `(\.` + member + `)?`
			name += "." + member
		}
		if !regexp.MustCompile(pattern + `(\W?\s|\W*$|[^\w.])`).MatchString(text) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// File is the name of a library's golden file.
func File(dir string) string { return fmt.Sprintf("hack/api/%s.txt", dir) }
