package kind

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// createTries is how often a creation may begin: a second collision in a row is rare, and a third is something else.
const createTries = 4

// whileTaken runs create, and again after remove as long as the engine refuses a container for a port or a name that it gave away.
//
// The library looks for free ports of this machine and lets them go again before the engine takes them, so that a container made at the
// same time may have one first; and containers of a creation that failed may still appear, with the names that the next one needs.
func (c *Cluster) whileTaken(ctx context.Context, create, remove func() error) error {
	for try := 1; ; try++ {
		err := explained(create())
		if err == nil || ctx.Err() != nil || try == createTries || !taken(err) {
			return err
		}
		c.say("Begin again: %v", err)
		if gone := remove(); gone != nil {
			return fmt.Errorf("%w; and what it left could not be removed: %w", err, gone)
		}
	}
}

// taken says whether the engine refused a container because another one has its port or its name.
func taken(err error) bool {
	for _, text := range []string{"port is already allocated", "address already in use", "is already in use by container"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// explained adds to the error of a command what the command said, which the library keeps beside it.
func explained(err error) error {
	failed := exec.RunErrorForError(err)
	if failed == nil {
		return err
	}
	said := plain(strings.Join(strings.FieldsFunc(string(failed.Output), func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
	if said == "" {
		return err
	}
	if over := len(said) - maxSaid; over > 0 {
		said = "... " + said[over:] // the end says why
	}
	return fmt.Errorf("%w: %s", err, said)
}

// maxSaid bounds, in bytes, what an error repeats of a command's output: kubeadm prints pages.
const maxSaid = 2000
