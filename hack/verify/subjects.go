// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/solonode/sno/hack/workspace"
)

const maxSubject = 72

type subjectRules struct {
	// Modules are accepted before the colon although they are no folders at the top of the repository.
	Modules []string `json:"modules"`
	// Imperatives end like another form of a verb.
	Imperatives []string `json:"imperatives"`
}

var (
	subjectForm   = regexp.MustCompile(`^([^\s:]+): (\S.*)$`)
	firstWord     = regexp.MustCompile(`^[A-Za-z]+`)
	notImperative = regexp.MustCompile(`(?:s|ed|ing)$`)
)

// checkSubjects returns the faults of the commits after Since, without merges. It needs the history: where git or the
// commit is missing, as in a shallow clone or an exported tree, it writes a notice and returns none.
func checkSubjects(ctx context.Context, ws *workspace.Workspace, g *glossary, folders []string, w io.Writer) (Findings, error) {
	if err := ws.Command(ctx, ".", nil, "git", "rev-parse", "--quiet", "--verify", g.Since+"^{commit}").Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fmt.Fprintf(w, "      commit subjects are not checked: git does not find commit %s of %s (%v)\n", g.Since, glossaryFile, err)
		return nil, nil
	}
	out, err := ws.Command(ctx, ".", nil, "git", "log", "--no-merges", "--format=%h %s", g.Since+"..HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("list the commits after %s with git: %w", g.Since, err)
	}
	var faults Findings
	for line := range strings.Lines(string(out)) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		for _, fault := range g.Subjects.faults(subject, folders) {
			faults = append(faults, fmt.Sprintf("commit %s: %q: %s", hash, subject, fault))
		}
	}
	return faults, nil
}

// faults returns what is wrong with a subject.
func (r subjectRules) faults(subject string, folders []string) []string {
	var faults []string
	if n := utf8.RuneCountInString(subject); n > maxSubject {
		faults = append(faults, fmt.Sprintf("has %d characters, at most %d are allowed", n, maxSubject))
	}
	form := subjectForm.FindStringSubmatch(subject)
	if form == nil {
		return append(faults, "is not of the form `module: imperative`")
	}
	if !slices.Contains(folders, form[1]) && !slices.Contains(r.Modules, form[1]) {
		faults = append(faults, fmt.Sprintf("module %q is neither a folder at the top of the repository nor one of %s",
			form[1], strings.Join(r.Modules, ", ")))
	}
	word := strings.ToLower(firstWord.FindString(form[2]))
	switch {
	case word == "":
		faults = append(faults, "no verb follows the module")
	case notImperative.MatchString(word) && !slices.Contains(r.Imperatives, word):
		faults = append(faults, fmt.Sprintf("%q is not an imperative; one that ends like this belongs into subjects.imperatives of %s", word, glossaryFile))
	}
	return faults
}

func topFolders(files []string) []string {
	var folders []string
	for _, file := range files {
		if folder, _, inside := strings.Cut(file, "/"); inside {
			folders = append(folders, folder)
		}
	}
	return slices.Compact(folders)
}
