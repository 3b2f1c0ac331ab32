// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	var output strings.Builder
	o, err := parse([]string{"-name", "a1", "-rounds", "2", "-out", "b", "-keep"}, &output)
	if err != nil || o.machine().Name != "a1" || o.rounds != 2 || o.out != "b" || !o.keep {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{{"word"}, {"-nonsense"}, {"-rounds=0"}} {
		if _, err := parse(wrong, &output); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
