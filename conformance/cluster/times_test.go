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
		fields := reflect.TypeOf(times)
		for i := range fields.NumField() {
			if reflect.ValueOf(times).Field(i).Int() <= 0 {
				t.Errorf("%s: %s is not positive", name, fields.Field(i).Name)
			}
			for _, wrong := range []int64{0, -1} {
				without := times
				reflect.ValueOf(&without).Elem().Field(i).SetInt(wrong)
				if err := without.Validate(); !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), ": "+fields.Field(i).Name+";") {
					t.Errorf("%s with %s %d: %v", name, fields.Field(i).Name, wrong, err)
				}
			}
		}
		if err := times.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Times{}).Validate(); err == nil || strings.Count(err.Error(), ", ") != reflect.TypeFor[Times]().NumField()-1 {
		t.Errorf("no times: %v", err)
	}
}
