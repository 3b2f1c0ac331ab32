// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"os/exec"
)

// foreign matches paths of one machine and hosts of package registries, of which every machine has its own configured.
const foreign = "(^|[[:space:]\"'`=(:,[])/((work|root|home/[a-z]+|Users/[A-Za-z]+)(/|\\b)|tmp/)|" +
	`\b((proxy|sum)\.golang\.org|goproxy\.(io|cn)|registry\.npmjs\.org|pypi\.org|files\.pythonhosted\.org|crates\.io|rubygems\.org|(deb|security)\.debian\.org)\b`

func checkPaths(ctx context.Context, r repo) error {
	// The user of Fedora CoreOS has its home on every machine.
	out, err := r.Command(ctx, ".", "git", "grep", "--untracked", "-nIE", "-e", foreign, "--and", "--not", "-e", "/home/core").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // there is none
	}
	return errors.Join(err, lines(out).orNil())
}
