// SPDX-License-Identifier: Apache-2.0

// Package changelog reads CHANGELOG.md, which has the format of https://keepachangelog.com/en/1.1.0/.
package changelog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// File is the name of the changelog.
const File = "CHANGELOG.md"

// ErrNoEntry is returned for a changelog without an entry for the next release.
var ErrNoEntry = errors.New("no entry")

const unreleased = "## [Unreleased]\n"

var (
	sectionHeading = regexp.MustCompile(`(?m)^## `)
	kindHeading    = regexp.MustCompile(`(?m)^### (.*)$`)
)

// Unreleased returns the text of the section for the next release.
func Unreleased(text string) string {
	_, section, _ := strings.Cut("\n"+text, "\n"+unreleased)
	if next := sectionHeading.FindStringIndex(section); next != nil {
		section = section[:next[0]]
	}
	return strings.TrimSpace(section)
}

// Kinds returns the text of the section for the next release below the headings, such as Removed.
func Kinds(text string, kinds ...string) string {
	section := Unreleased(text)
	headings := kindHeading.FindAllStringSubmatchIndex(section, -1)
	var found strings.Builder
	for i, at := range headings {
		end := len(section)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		for _, kind := range kinds {
			if strings.TrimSpace(section[at[2]:at[3]]) == kind {
				found.WriteString(section[at[1]:end])
			}
		}
	}
	return found.String()
}

// Release returns the text with the section for the next release under the version, and an empty one above it.
func Release(text, version string, date time.Time) (string, error) {
	heading := fmt.Sprintf("## [%s]", strings.TrimPrefix(version, "v"))
	if strings.Contains(text, "\n"+heading) {
		return "", fmt.Errorf("%s has the section %q already", File, heading)
	}
	if Unreleased(text) == "" {
		return "", fmt.Errorf("%w for %s: describe the changes in %s below %q", ErrNoEntry, version, File, strings.TrimSpace(unreleased))
	}
	return strings.Replace(text, unreleased, unreleased+"\n"+heading+" - "+date.Format(time.DateOnly)+"\n", 1), nil
}
