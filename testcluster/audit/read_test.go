// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"testing"
)

// The line that is still being written is left for the next call.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	const whole = `{"verb":"create","user":{"username":"a"}}` + "\n"
	if err := os.WriteFile(path, []byte(whole+whole[:10]), 0o600); err != nil {
		t.Fatal(err)
	}
	events, next, err := Read(path, 0, nil)
	if err != nil || len(events) != 1 || next != int64(len(whole)) {
		t.Fatalf("%d events up to %d, %v", len(events), next, err)
	}
	if err := os.WriteFile(path, []byte(whole+whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if events, next, err = Read(path, next, nil); err != nil || len(events) != 1 || next != int64(2*len(whole)) {
		t.Errorf("%d events up to %d, %v", len(events), next, err)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = Read(path, 0, nil); err == nil {
		t.Error("an invalid line is read without an error")
	}
}
