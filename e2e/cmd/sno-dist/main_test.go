// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for arguments, test := range map[string]struct {
		code int
		want string
	}{
		"-help":                     {exitDone, "-check-empty-cache"},
		"-nonsense":                 {exitBadInput, "-nonsense"},
		"further":                   {exitBadInput, `unexpected argument "further"`},
		"-only kubectl":             {exitBadInput, `-only: invalid input: no program is called "kubectl"; there are: approve, `},
		"-platforms linux/amd64,vm": {exitBadInput, `-platforms: invalid input: no platform is called "vm"; there are: [linux/amd64 linux/arm64 `},
		"-only approve -out .":      {exitBadInput, "use another folder"},
	} {
		var out, progress bytes.Buffer
		if code := run(strings.Fields(arguments), &out, &progress); code != test.code || !strings.Contains(progress.String(), test.want) || out.Len() > 0 {
			t.Errorf("%s: %d, %s%s", arguments, code, &progress, &out)
		}
	}
}
