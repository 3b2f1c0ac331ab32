// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/api"
	"github.com/solonode/sno/hack/changelog"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

const apiFile = "docs/api.md"

// checkAPI compares the exported declarations of each released library with its golden file, in which "+ " marks a line
// that is new since the last release and "- " one that is gone; a changed declaration is both. `verify -generate`
// writes the marks, `make release` removes them and what is gone. CHANGELOG.md must name what is gone.
func checkAPI(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	libraries, version, err := librariesInFocus(ws)
	if err != nil || len(libraries) == 0 {
		return err
	}
	packages, err := api.Load(ctx, ws, libraries...)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(ws.Path(changelog.File))
	if err != nil {
		return err
	}
	mentions := changelog.Kinds(string(text), "Removed", "Changed")
	var faults Findings
	for _, dir := range libraries {
		file := api.File(dir)
		text, err := os.ReadFile(ws.Path(file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		golden := api.Parse(string(text))
		updated := golden.Update(api.Lines(packages[dir]))
		if updated.String() != string(text) {
			faults = append(faults, fmt.Sprintf("%s: does not match the code; run `go run -C hack ./cmd/verify -generate %s`", file, dir))
			faults = append(faults, updated.Changes(golden)...)
		}
		for _, name := range updated.Unmentioned(mentions) {
			faults = append(faults, fmt.Sprintf(
				"%s: %s is gone or has changed since the last release; describe it in %s, section Unreleased, under Removed or Changed",
				file, name, changelog.File))
		}
		released, err := ws.Command(ctx, ".", nil, "git", "cat-file", "blob", dir+"/"+version+":"+file).Output()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue // there is no such tag, as before the first release and in a shallow clone
		}
		for _, line := range golden.Lacks(api.Parse(string(released)).Release()) {
			faults = append(faults, fmt.Sprintf("%s: lacks a line of %s/%s: %s", file, dir, version, line))
		}
	}
	if ws.InFocus(apiFile) {
		want, err := apiDocument(ctx, ws)
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(ws.Path(apiFile)); err != nil || string(got) != want {
			faults = append(faults, apiFile+": does not match the packages; run make generate")
		}
	}
	return faults.errorOrNil()
}

// generateAPI writes the golden files of the libraries in focus, and the list of packages.
func generateAPI(ctx context.Context, ws *workspace.Workspace) (generated []string, err error) {
	libraries, _, err := librariesInFocus(ws)
	if err != nil || len(libraries) == 0 {
		return nil, err
	}
	packages, err := api.Load(ctx, ws, libraries...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(ws.Path("hack/api"), 0o755); err != nil {
		return nil, err
	}
	for _, dir := range libraries {
		text, err := os.ReadFile(ws.Path(api.File(dir)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return generated, err
		}
		updated := api.Parse(string(text)).Update(api.Lines(packages[dir]))
		if err := os.WriteFile(ws.Path(api.File(dir)), []byte(updated.String()), 0o644); err != nil {
			return generated, err
		}
		generated = append(generated, api.File(dir))
	}
	if _, err := os.Stat(ws.Path("docs")); err != nil {
		return generated, nil
	}
	text, err := apiDocument(ctx, ws)
	if err != nil {
		return generated, err
	}
	return append(generated, apiFile), os.WriteFile(ws.Path(apiFile), []byte(text), 0o644)
}

// librariesInFocus returns the folders of the released libraries in focus, and the version of the last release.
func librariesInFocus(ws *workspace.Workspace) ([]string, string, error) {
	pins, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return nil, "", err
	}
	libraries := slices.DeleteFunc(slices.Clone(pins.Release.Libraries), func(dir string) bool { return !ws.InFocus(dir) })
	return libraries, pins.Release.Version, nil
}

const apiIntroduction = `# API

The packages that other repositories may import. ` + "`make generate`" + ` writes this page from the documentation of the packages, and the golden
files in [hack/api](../hack/api), which list every exported declaration and what has changed since the last release.

- **Promise**: what a release removes or changes is in [CHANGELOG.md](../CHANGELOG.md). In v0 a minor version may do that, a patch version
  may not. Values of constants are part of the API: names of conditions, reasons, annotations and field owners.
- **No API**: programs and their flags, tests, packages called ` + "`internal`" + `, the packages listed as such below, and all other modules:
  cli, render and install have programs only; testcluster, e2e, hack, tools and examples are for this repository.
`

// apiDocument returns the text of docs/api.md.
func apiDocument(ctx context.Context, ws *workspace.Workspace) (string, error) {
	pins, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(apiIntroduction)
	for _, dir := range pins.Release.Libraries {
		summaries, err := api.Summaries(ctx, ws, dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n## %s\n\n", dir)
		var private []string
		for _, s := range summaries {
			if s.Private {
				private = append(private, "`"+s.Path+"`")
				continue
			}
			text.WriteString(wrapped(fmt.Sprintf("- [`%s`](../%s) %s", s.Path, s.Path, sentence(s.Text))))
		}
		if len(private) > 0 {
			fmt.Fprintf(&text, "\nNo API: %s.\n", strings.Join(private, ", "))
		}
	}
	return text.String(), nil
}

// docLink matches a link of Go's documentation.
var docLink = regexp.MustCompile(`\[(\w+)\]`)

// sentence returns a sentence of Go's documentation for Markdown.
func sentence(text string) string {
	return docLink.ReplaceAllString(strings.TrimRight(text, ":.")+".", "`$1`")
}

// wrapped breaks an item of a list into lines.
func wrapped(item string) string {
	const columns = 130
	var text strings.Builder
	length := 0
	for i, word := range strings.Fields(item) {
		switch {
		case i == 0:
		case length+1+len(word) > columns:
			text.WriteString("\n  ")
			length = 2
		default:
			text.WriteString(" ")
			length++
		}
		text.WriteString(word)
		length += len(word)
	}
	return text.String() + "\n"
}
