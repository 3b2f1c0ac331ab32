// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Source is the version and the time of a checkout.
type Source struct {
	Version string
	// Time is that of the commit, or of SOURCE_DATE_EPOCH.
	Time time.Time
}

// tagPrefix is that of the tags of one of the modules; all are released together.
const tagPrefix = "cli/"

// Describe returns the version of a released commit, and a pseudo-version, as Go has them for modules, of another one.
// It ends in +dirty if tracked files differ from the commit.
func Describe(ctx context.Context, root string) (Source, error) {
	commit, err := git(ctx, root, "log", "-1", "--format=%ct %H")
	if err != nil {
		return Source{}, err
	}
	seconds, hash, _ := strings.Cut(commit, " ")
	status, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return Source{}, err
	}
	here, err := git(ctx, root, "tag", "--points-at", "HEAD", "--list", tagPrefix+"v*")
	if err != nil {
		return Source{}, err
	}
	before, err := git(ctx, root, "tag", "--merged", "HEAD", "--list", tagPrefix+"v*")
	if err != nil {
		return Source{}, err
	}
	return describe(seconds, hash, highest(here), highest(before), status != "", os.Getenv("SOURCE_DATE_EPOCH"))
}

func describe(seconds, hash, here, before string, dirty bool, epoch string) (s Source, err error) {
	if s.Time, err = parseTime(seconds); err != nil {
		return s, err
	}
	s.Version = here
	if here == "" {
		major := semver.Major(before)
		if major == "" {
			major = "v0"
		}
		s.Version = module.PseudoVersion(major, before, s.Time, hash[:min(len(hash), 12)])
	}
	if dirty {
		s.Version += "+dirty"
	}
	if epoch != "" {
		s.Time, err = parseTime(epoch)
	}
	return s, err
}

func parseTime(seconds string) (time.Time, error) {
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("a time in seconds since 1970: %w", err)
	}
	return time.Unix(at, 0).UTC(), nil
}

// highest returns the highest version of tags, or "".
func highest(tags string) (version string) {
	for tag := range strings.FieldsSeq(tags) {
		if v := strings.TrimPrefix(tag, tagPrefix); semver.IsValid(v) && (version == "" || semver.Compare(v, version) > 0) {
			version = v
		}
	}
	return version
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
