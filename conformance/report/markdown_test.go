// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

func TestMarkdownEscapes(t *testing.T) {
	for _, test := range []struct{ in, plain, code string }{
		{"", "", ""},
		{"a|b", `a\|b`, "`a\\|b`"},
		{"two\nlines", "two lines", "`two lines`"},
		{"<b>*x*</b>", `\<b\>\*x\*\</b\>`, "`<b>*x*</b>`"},
		{"a`b", "a\\`b", "``a`b``"},
		{"`", "\\`", "`` ` ``"},
	} {
		if got := plain(test.in); got != test.plain {
			t.Errorf("plain(%q) = %q, want %q", test.in, got, test.plain)
		}
		if got := code(test.in); got != test.code {
			t.Errorf("code(%q) = %q, want %q", test.in, got, test.code)
		}
	}
}
