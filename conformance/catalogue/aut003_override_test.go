// SPDX-License-Identifier: Apache-2.0

package catalogue

import "testing"

func TestRelease(t *testing.T) {
	for release, want := range map[string]bool{"4.7.13": true, "4.8.0": false, "4.21.3": false, "4.8.0-rc.1": false, "": false, "newest": false} {
		if got := beforeTopologies(release); got != want {
			t.Errorf("%q: %t, want %t", release, got, want)
		}
	}
	for text, want := range map[string]bool{`{"a":true}`: true, "a: true": true, "b: true": false, "": false, "- a": false, "{": false} {
		if got := containsKey([]byte(text), "a"); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
