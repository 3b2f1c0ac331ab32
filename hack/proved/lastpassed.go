// SPDX-License-Identifier: Apache-2.0

package proved

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/hack/inputs"
)

// Time limits of a whole run of CI on two processors: with empty caches, with everything changed, with one module
// changed.
const (
	BoundEmptyCaches = 60 * time.Minute
	BoundEverything  = 40 * time.Minute
	BoundOneModule   = 20 * time.Minute
)

const lastPassedFile = "green.json"

// Parts returns the sums of the modules with code, and of the inputs of every step. Documents are no part.
func (k *Keyer) Parts() (map[string]string, error) {
	names := slices.Clone(everyStep)
	for _, m := range k.ws.Modules {
		if !m.IsTool() {
			names = append(names, m.Dir)
		}
	}
	versions, err := k.sums.Versions()
	if err != nil {
		return nil, err
	}
	parts := map[string]string{"versions": inputs.Sum(versions, k.sums.Tools())}
	for _, name := range names {
		if parts[name], err = k.sums.Path(name); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// LastPassed returns the parts of the last run in which everything passed, or nil.
func (s Store) LastPassed() map[string]string {
	var parts map[string]string
	text, err := os.ReadFile(filepath.Join(s.folder, lastPassedFile))
	if err != nil || json.Unmarshal(text, &parts) != nil {
		return nil
	}
	return parts
}

// SetLastPassed records the parts of a run in which everything passed.
func (s Store) SetLastPassed(parts map[string]string) error {
	text, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(s.folder, 0o755), os.WriteFile(filepath.Join(s.folder, lastPassedFile), text, 0o600))
}

// Bound returns the time limit of a run, given the changes since the last one in which everything passed, and the
// reason. If only one module has changed, it returns its name.
func Bound(before, now map[string]string) (bound time.Duration, module, why string) {
	if before == nil {
		return BoundEmptyCaches, "", "empty caches: no run has passed on this machine"
	}
	var changed []string
	common := false
	for name, sum := range now {
		if before[name] != sum {
			changed = append(changed, name)
			common = common || name == "versions" || slices.Contains(everyStep, name)
		}
	}
	slices.Sort(changed)
	switch {
	case len(changed) == 0:
		return BoundOneModule, "", "no module has changed since the last run that passed"
	case len(changed) == 1 && !common:
		return BoundOneModule, changed[0], "one module has changed since the last run that passed: " + changed[0]
	default:
		return BoundEverything, "", fmt.Sprintf("%d parts have changed since the last run that passed: %s", len(changed), strings.Join(changed, " "))
	}
}
