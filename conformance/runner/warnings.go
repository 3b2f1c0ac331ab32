// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"slices"
	"sync"
)

// warnings collects the distinct warnings of the API server. They are written into artifacts, not printed.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, found := slices.BinarySearch(w.texts, text); text != "" && !found {
		w.texts = slices.Insert(w.texts, at, text)
	}
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
