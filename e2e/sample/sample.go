// SPDX-License-Identifier: Apache-2.0

// Package sample selects a part of all cases: a number of them, beginning at a start, so that successive starts select
// all.
package sample

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable with the start. Without it tests use all cases.
const Variable = "SNO_SAMPLE"

// Start returns the number in $SNO_SAMPLE, 0 without one.
func Start() (uint64, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return 0, nil
	}
	start, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("$%s is %q, want a number, or nothing for all cases", Variable, text)
	}
	return start, nil
}

// Select returns the cases of a test: as many as most if $SNO_SAMPLE is set, otherwise all. It logs which.
func Select[T any](t testing.TB, all []T, most int) []T {
	t.Helper()
	start, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(Variable) == "" {
		return all
	}
	chosen := SelectFrom(all, most, start)
	t.Log(Describe(len(chosen), len(all), start))
	return chosen
}

// SelectFrom returns as many cases as most, beginning at start.
func SelectFrom[T any](all []T, most int, start uint64) []T {
	if most <= 0 || most >= len(all) {
		return all
	}
	chosen := make([]T, 0, most)
	for i := range uint64(most) {
		chosen = append(chosen, all[(start*uint64(most)+i)%uint64(len(all))])
	}
	return chosen
}

// Describe describes the sample.
func Describe(chosen, all int, start uint64) string {
	if chosen == all {
		return fmt.Sprintf("all %d", all)
	}
	return fmt.Sprintf("%d of %d, start %d", chosen, all, start)
}
