// SPDX-License-Identifier: Apache-2.0

package proved

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/hack/inputs"
	"github.com/solonode/sno/hack/workspace"
)

// ErrInput is returned for an input that is neither a module, a file nor a folder of the repository: its changes would
// not be detected.
var ErrInput = errors.New("no such module, file or folder in the repository")

// everyStep has the inputs of every step.
var everyStep = []string{"Makefile", ".ci", "tools"}

// Step is something that passes or fails.
type Step struct {
	Name string
	// Command is part of the key.
	Command []string
	// Inputs are folders of modules, which include all modules that they require, and other files and folders,
	// relative to the root of the repository. "." is everything.
	Inputs []string
}

// Record describes a step that passed.
type Record struct {
	Step    string    `json:"step"`
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	// Note is a text of the step, such as the start of a sample.
	Note string `json:"note,omitempty"`
}

// Store holds the records, a file for each key.
type Store struct{ folder string }

// OpenStore returns the store of all checkouts of this machine: below $SNO_CACHE, or sno/ in the user's cache folder.
func OpenStore() (Store, error) {
	cache, err := workspace.CacheDir()
	return Store{folder: filepath.Join(cache, "proved")}, err
}

// Lookup returns the record of a key. An unreadable file counts as none.
func (s Store) Lookup(key string) (Record, bool) {
	var r Record
	text, err := os.ReadFile(filepath.Join(s.folder, key+".json"))
	return r, err == nil && json.Unmarshal(text, &r) == nil && r.Step != ""
}

// Add writes a record atomically.
func (s Store) Add(key string, r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.folder, "new-")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), filepath.Join(s.folder, key+".json"))
}

// Keyer computes the keys of steps. It reads every file once.
type Keyer struct {
	ws   *workspace.Workspace
	sums *inputs.Sums
}

// NewKeyer reads the current repository.
func NewKeyer(ctx context.Context, ws *workspace.Workspace) (*Keyer, error) {
	sums, err := inputs.Read(ctx, ws)
	return &Keyer{ws: ws, sums: sums}, err
}

// Key returns the sum of all inputs of the step, and the folders and files that it includes.
func (k *Keyer) Key(step Step) (key string, made []string, err error) {
	names := slices.Concat(everyStep, step.Inputs)
	for _, name := range step.Inputs {
		if _, err := os.Lstat(k.ws.Path(name)); errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("step %s: %w: %s", step.Name, ErrInput, name)
		}
	}
	made = k.sums.Closure(names...)
	versions, err := k.sums.Versions()
	if err != nil {
		return "", nil, err
	}
	// The folder of the checkout is no input.
	command := strings.ReplaceAll(strings.Join(step.Command, "\x00"), k.ws.Root, ".")
	parts := []string{k.sums.Tools(), step.Name, command, versions}
	for _, name := range made {
		sum, err := k.sums.Path(name)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, name, sum)
	}
	return inputs.Sum(parts...), made, nil
}
