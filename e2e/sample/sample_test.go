// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Successive starts select everything, and no sample contains a case twice.
func TestSuccessiveNumbersCoverAll(t *testing.T) {
	for _, count := range []int{1, 2, 5, 6, 7, 13} {
		var all []int
		for i := range count {
			all = append(all, i)
		}
		for most := 1; most <= count; most++ {
			seen := map[int]bool{}
			for start := uint64(1000); start < 1000+uint64((count+most-1)/most); start++ {
				chosen := SelectFrom(all, most, start)
				sorted := slices.Compact(slices.Sorted(slices.Values(chosen)))
				if len(chosen) != most || len(sorted) != most {
					t.Fatalf("%d of %d, start %d: %v", most, count, start, chosen)
				}
				for _, one := range chosen {
					seen[one] = true
				}
			}
			if len(seen) != count {
				t.Errorf("%d of %d: only %d were chosen", most, count, len(seen))
			}
		}
	}
}

func TestSelect(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	for name, test := range map[string]struct {
		variable string
		want     []string
	}{
		"not set":       {want: all},
		"first":         {variable: "0", want: []string{"a", "b"}},
		"second":        {variable: "1", want: []string{"c", "d"}},
		"round the end": {variable: "2", want: []string{"e", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, test.variable)
			if diff := cmp.Diff(test.want, Select(t, all, 2)); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
	t.Setenv(Variable, strconv.Itoa(7))
	if diff := cmp.Diff(all, Select(t, all, 9)); diff != "" {
		t.Errorf("more than all (-want +got):\n%s", diff)
	}
}
