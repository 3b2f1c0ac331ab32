package checks

import (
	"slices"
	"sync"
)

// warnings are what the API server warned of during a run, each once. They are about what the cluster serves and are for whoever looks for a
// cause, so that they are collected and not printed.
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
