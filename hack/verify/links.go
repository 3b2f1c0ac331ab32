// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// link matches the target of a Markdown link to another file of the repository, or to a heading.
var link = regexp.MustCompile(`\]\(([^)\s:]+)\)`)

// heading matches a heading, notInAnchor what its anchor omits, and anchorInText an explicit anchor.
var (
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchorInText = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func linkFaults(ctx context.Context, ws *workspace.Workspace) (Findings, error) {
	files, err := ws.Files(ctx)
	if err != nil {
		return nil, err
	}
	var faults Findings
	for _, name := range files {
		if path.Ext(name) != ".md" || strings.Contains(name, "/testdata/") || !ws.InFocus(name) {
			continue
		}
		text, err := os.ReadFile(ws.Path(name))
		if err != nil {
			return nil, err
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(ws.Path(file)); err != nil {
				faults = append(faults, fmt.Sprintf("%s: links to %s, which does not exist", name, target))
				continue
			}
			if anchor != "" && !hasAnchor(ws, file, anchor) {
				faults = append(faults, fmt.Sprintf("%s: links to #%s, a heading or anchor that %s does not have", name, anchor, file))
			}
		}
	}
	return faults, nil
}

func hasAnchor(ws *workspace.Workspace, file, anchor string) bool {
	text, err := os.ReadFile(ws.Path(file))
	if err != nil {
		return false
	}
	if slices.ContainsFunc(anchorInText.FindAllSubmatch(text, -1), func(match [][]byte) bool { return string(match[1]) == anchor }) {
		return true
	}
	return slices.ContainsFunc(heading.FindAllStringSubmatch(string(text), -1), func(match []string) bool {
		return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-") == anchor
	})
}
