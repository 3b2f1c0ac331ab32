// Package sample chooses what a proof goes through when it does not go through everything: so many of all, beginning at a number, so that
// successive numbers come round to all of them.
package sample

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable with the number. Without it a proof goes through everything.
const Variable = "SNO_SAMPLE"

// Start returns the number in $SNO_SAMPLE, 0 without one.
func Start() (uint64, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return 0, nil
	}
	start, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("$%s is %q, want a number, or nothing to go through everything", Variable, text)
	}
	return start, nil
}

// Select is what the test goes through: as many of all as most where $SNO_SAMPLE is a number, otherwise all of them. The test's log says which.
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

// SelectFrom is as many of all as most, beginning at start.
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

// Describe says to a person what SelectFrom leaves out.
func Describe(chosen, all int, start uint64) string {
	if chosen == all {
		return fmt.Sprintf("all %d", all)
	}
	return fmt.Sprintf("%d of %d, start %d", chosen, all, start)
}
