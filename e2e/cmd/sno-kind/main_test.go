// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	var output strings.Builder
	o, err := parse([]string{"-experiments", "a,b", "-name", "c", "-out", "d"}, &output)
	if err != nil || !slices.Equal(o.names(), []string{"a", "b"}) || o.kind.Name != "c" || o.figures() != "d/figures" || o.scenario != defaultScenario {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"-experiments", "none"}, &output); err != nil || o.names() != nil || o.figures() != "" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{{"word"}, {"-nonsense"}} {
		if _, err := parse(wrong, &output); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
