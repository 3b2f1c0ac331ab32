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

// Bounds of a whole run of CI on two processors: with empty caches, with everything changed, with one module changed.
const (
	BoundEmptyCaches = 60 * time.Minute
	BoundEverything  = 40 * time.Minute
	BoundOneModule   = 20 * time.Minute
)

// greenFile has the sums of the parts of the repository when all steps passed last.
const greenFile = "green.json"

// Parts are the sums over the modules with code, and over what every step depends on. Documents are no part.
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

// LastPassed are the parts of the last run in which everything passed; nil where there was none.
func (s Store) LastPassed() map[string]string {
	var parts map[string]string
	text, err := os.ReadFile(filepath.Join(s.folder, greenFile))
	if err != nil || json.Unmarshal(text, &parts) != nil {
		return nil
	}
	return parts
}

// SetLastPassed remembers the parts of a run in which everything passed.
func (s Store) SetLastPassed(parts map[string]string) error {
	text, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(s.folder, 0o755), os.WriteFile(filepath.Join(s.folder, greenFile), text, 0o600))
}

// Bound returns how long a run may take, given what has changed since the last one in which everything passed, and the reason. Where only one module
// has changed it is named.
func Bound(green, now map[string]string) (bound time.Duration, module, why string) {
	if green == nil {
		return BoundEmptyCaches, "", "empty caches: no run has passed on this machine"
	}
	var changed []string
	common := false
	for name, sum := range now {
		if green[name] != sum {
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
