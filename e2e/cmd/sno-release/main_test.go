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
		"":                               {exitBadInput, "want images or dist"},
		"bundle":                         {exitBadInput, "want images or dist"},
		"images -help":                   {exitDone, "-prefix"},
		"images -prefix sno/":            {exitBadInput, "begin with a registry"},
		"dist -help":                     {exitDone, "-check-empty-cache"},
		"dist -nonsense":                 {exitBadInput, "-nonsense"},
		"dist further":                   {exitBadInput, `unexpected argument "further"`},
		"dist -only kubectl":             {exitBadInput, `-only: invalid input: no program is called "kubectl"; there are: approve, `},
		"dist -platforms linux/amd64,vm": {exitBadInput, `-platforms: invalid input: no platform is called "vm"; there are: [linux/amd64 linux/arm64 `},
		"dist -only approve -out .":      {exitBadInput, "use another folder"},
	} {
		var out, progress bytes.Buffer
		if code := run(strings.Fields(arguments), &out, &progress); code != test.code || !strings.Contains(progress.String(), test.want) || out.Len() > 0 {
			t.Errorf("%s: %d, %s%s", arguments, code, &progress, &out)
		}
	}
}
