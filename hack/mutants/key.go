// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"

	"github.com/solonode/sno/hack/inputs"
	"github.com/solonode/sno/hack/workspace"
)

// rules is the code that decides which mutants are caught. When it changes, all are tried again.
//
//go:embed command.go entry.go runner.go
var rules embed.FS

// keyer computes the keys of mutants: sums of all inputs of a result.
type keyer struct {
	sums  *inputs.Sums
	rules string
}

func newKeyer(ctx context.Context, ws *workspace.Workspace) (*keyer, error) {
	// An entry is part of its own key only.
	sums, err := inputs.Read(ctx, ws, FileName)
	if err != nil {
		return nil, err
	}
	k := &keyer{sums: sums}
	err = fs.WalkDir(rules, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := rules.ReadFile(name)
		k.rules += "\x00" + string(text)
		return err
	})
	return k, err
}

func (k *keyer) again(ctx context.Context) (*keyer, error) {
	sums, err := k.sums.Reread(ctx)
	return &keyer{sums: sums, rules: k.rules}, err
}

// key returns the sum of the entry, the tools, and every file of the module and of those modules of the repository that
// it is built with.
func (k *keyer) key(m workspace.Module, entry Entry) (string, error) {
	entry.Name, entry.Why = "", "" // no effect on the result
	change, err := json.Marshal(entry)
	if err != nil {
		return "", err
	}
	parts := []string{k.sums.Tools() + k.rules, m.Dir, string(change)}
	for _, dir := range k.folders(m, entry) {
		sum, err := k.sums.Path(dir)
		if err != nil {
			return "", err
		}
		parts = append(parts, dir, sum)
	}
	versions, err := k.sums.Versions()
	if err != nil {
		return "", err
	}
	return inputs.Sum(append(parts, versions)...), nil
}

func (k *keyer) folders(m workspace.Module, entry Entry) []string {
	if len(entry.Command) > 0 || m.Dir == "e2e" {
		return []string{"."} // e2e builds the programs of modules that it does not require
	}
	return k.sums.Closure(m.Dir)
}
