// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const text = `# Changelog

## [Unreleased]

### Added

- a.New

### Removed

- a.Old

### Changed

- a.Other

## [0.1.0] - 2026-01-02

### Removed

- a.Ancient
`

func TestKinds(t *testing.T) {
	got := strings.Fields(Kinds(text, "Removed", "Changed"))
	if diff := cmp.Diff([]string{"-", "a.Old", "-", "a.Other"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Kinds("# Changelog\n", "Removed"); got != "" {
		t.Errorf("a text without the section: %q", got)
	}
}

func TestRelease(t *testing.T) {
	date := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	got, err := Release(text, "v0.2.0", date)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Release(got, "v0.3.0", date); !errors.Is(err, ErrNoEntry) {
		t.Errorf("a release without an entry: %v", err)
	}
	if _, err := Release(text, "v0.1.0", date); err == nil {
		t.Error("a second release of a version is no error")
	}
}
