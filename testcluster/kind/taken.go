// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// createTries is how often a creation may begin: a second collision in a row is rare, and a third has another cause.
const createTries = 4

// whileTaken runs create, and again after remove while the engine refuses a container because of a port or a name. kind
// selects free ports before the engine binds them, so another container may take one first; and containers of a failed
// creation may appear late, with the names that the next one needs.
func (c *Cluster) whileTaken(ctx context.Context, create, remove func() error) error {
	for try := 1; ; try++ {
		err := explained(create())
		if err == nil || ctx.Err() != nil || try == createTries || !taken(err) {
			return err
		}
		c.say("Retrying: %v", err)
		if gone := remove(); gone != nil {
			return fmt.Errorf("%w; and its remains could not be removed: %w", err, gone)
		}
	}
}

func taken(err error) bool {
	for _, text := range []string{"port is already allocated", "address already in use", "is already in use by container"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

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
		said = "... " + said[over:] // the end has the reason
	}
	return fmt.Errorf("%w: %s", err, said)
}

// maxSaid bounds the output of a command in an error, in bytes: kubeadm prints pages.
const maxSaid = 2000
