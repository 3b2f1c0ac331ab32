// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/solonode/sno/e2e/installing"
)

func TestParse(t *testing.T) {
	var output strings.Builder
	o, err := parse([]string{"-name", "a1", "-out", "b", "-keep"}, &output)
	if err != nil || o.name != "a1" || o.out != "b" || !o.keep {
		t.Errorf("%+v, %v", o, err)
	}
	if slices.ContainsFunc(o.ways, func(w installing.Method) bool { return w.Long }) || len(o.ways) == 0 {
		t.Error("long ways run by default")
	}
	if o, err := parse([]string{"-way", "all-in-one-renewal"}, &output); err != nil || len(o.ways) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{
		{"word"}, {"-nonsense"}, {"-way", "by-hand"}, {"-from", "node", "-out", "b"}, {"-way", "in-place", "-from", "node"},
		{"-until", "node"}, {"-wait"}, {"-wait", "-keep", "-way", "in-place"},
	} {
		if _, err := parse(wrong, &output); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
