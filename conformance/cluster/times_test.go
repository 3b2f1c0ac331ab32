// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestTimes: all fields of the predefined times are positive, and all are required.
func TestTimes(t *testing.T) {
	for name, times := range map[string]Times{"RealTimes": RealTimes(), "SimulatedTimes": SimulatedTimes()} {
		if err := times.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range reflect.TypeFor[Times]().NumField() {
		for _, wrong := range []int64{0, -1} {
			times, field := RealTimes(), reflect.TypeFor[Times]().Field(i).Name
			reflect.ValueOf(&times).Elem().Field(i).SetInt(wrong)
			if err := times.Validate(); !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), ": "+field+";") {
				t.Errorf("%s %d: %v", field, wrong, err)
			}
		}
	}
}
