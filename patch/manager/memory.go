package manager

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
)

// started is when what only the start needed is given back: the caches are filled, and the first looks are over.
const started = 30 * time.Second

// collectAt is how much garbage there is before it is collected, in percent of what is used. Twice the ordinary is some megabytes, for a moment, in a process
// of a few dozen, and at a change of topology every collection is in the way of a patch.
const collectAt = 200

// collectLess has garbage collected at that, unless somebody has said when by the environment, until what it returns is called.
func collectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(collectAt)
	return func() { debug.SetGCPercent(before) }
}

// giveBack waits until the start is over and gives back what only it needed: garbage, and pages of code, which are two thirds of an idle process. On
// one node every process is another one's memory.
func giveBack(ctx context.Context) {
	over := time.NewTimer(started)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return
	case <-over.C:
	}
	log := logr.FromContextOrDiscard(ctx)
	debug.FreeOSMemory()
	dropped, err := dropCode()
	if err != nil {
		log.V(1).Info("Memory of the start is kept", "cause", err.Error())
		return
	}
	log.V(1).Info("Memory of the start given back", "mappedBytes", dropped)
}
