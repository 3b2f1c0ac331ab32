package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	var said strings.Builder
	o, err := parse([]string{"-name", "a1", "-out", "b", "-keep"}, &said)
	if err != nil || o.name != "a1" || o.out != "b" || !o.keep {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{
		{"word"}, {"-nonsense"}, {"-way", "by-hand"}, {"-from", "node", "-out", "b"}, {"-way", "in-place", "-from", "node"},
		{"-until", "node"}, {"-wait"}, {"-wait", "-keep", "-way", "in-place"},
	} {
		if _, err := parse(wrong, &said); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}
