package mutants

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// rules is the code that says what counts as caught. When it changes, everything is tried again.
//
//go:embed command.go entry.go runner.go
var rules embed.FS

// keyer computes the keys of mutants: sums over all that a result depends on. It reads every module once.
type keyer struct {
	ws *workspace.Workspace
	// files are those of the repository, relative to its root.
	files []string
	// tools is the Go version and settings, the version of the Kubernetes programs, and the rules.
	tools string
	// sums are by folder.
	sums map[string]string
}

func newKeyer(ctx context.Context, ws *workspace.Workspace) (*keyer, error) {
	out, err := ws.Command(ctx, ".", nil, "go", "env", "GOVERSION", "GOFLAGS", "GOOS", "GOARCH", "GOEXPERIMENT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for the version of Go: %w", err)
	}
	// The folder is named for what was built into it.
	tools := string(out) + filepath.Base(os.Getenv("KUBEBUILDER_ASSETS"))
	err = fs.WalkDir(rules, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := rules.ReadFile(name)
		tools += "\x00" + string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return (&keyer{ws: ws, tools: tools}).again(ctx)
}

// again is a keyer for the files as they are now.
func (k *keyer) again(ctx context.Context) (*keyer, error) {
	files, err := k.ws.Files(ctx)
	if err != nil {
		return nil, err
	}
	return &keyer{ws: k.ws, files: files, tools: k.tools, sums: map[string]string{}}, nil
}

// key is the sum over the entry, the tools, and every file of the module and of those modules of the repository that it is built with.
func (k *keyer) key(m workspace.Module, entry Entry) (string, error) {
	entry.Name, entry.Why = "", "" // told, not tried
	change, err := json.Marshal(entry)
	if err != nil {
		return "", err
	}
	parts := []string{k.tools, m.Dir, string(change)}
	for _, dir := range k.folders(m, entry) {
		sum, err := k.folder(dir)
		if err != nil {
			return "", err
		}
		parts = append(parts, dir, sum)
	}
	versions, err := k.versions()
	if err != nil {
		return "", err
	}
	return sum(append(parts, versions)...), nil
}

// folders are those that a test or command can read, sorted.
func (k *keyer) folders(m workspace.Module, entry Entry) []string {
	if len(entry.Command) > 0 || m.Dir == "e2e" {
		return []string{"."} // e2e builds the programs of modules that it does not require
	}
	dirs := []string{m.Dir}
	for i := 0; i < len(dirs); i++ {
		for _, sibling := range k.siblings(dirs[i]) {
			if !slices.Contains(dirs, sibling) {
				dirs = append(dirs, sibling)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// siblings are the modules of the repository that the one in dir requires.
func (k *keyer) siblings(dir string) []string {
	required := map[string]bool{}
	for _, m := range k.ws.Modules {
		if m.Dir == dir {
			for _, require := range m.File.Require {
				required[require.Mod.Path] = true
			}
		}
	}
	var dirs []string
	for _, m := range k.ws.Modules {
		if m.File.Module != nil && required[m.File.Module.Mod.Path] {
			dirs = append(dirs, m.Dir)
		}
	}
	return dirs
}

// folder is the sum over the files of a folder, with their names.
func (k *keyer) folder(dir string) (string, error) {
	return k.once(dir, func(name string) bool {
		// An entry is part of its own key, and no business of the others.
		return path.Base(name) != FileName && (dir == "." || strings.HasPrefix(name, dir+"/"))
	})
}

// versions is the sum over what decides the versions of all dependencies: in a workspace every go.mod has a say.
func (k *keyer) versions() (string, error) {
	return k.once("versions", func(name string) bool {
		return name == "go.work" || path.Base(name) == "go.mod" && k.inWork(path.Dir(name))
	})
}

func (k *keyer) inWork(dir string) bool {
	return slices.ContainsFunc(k.ws.Modules, func(m workspace.Module) bool { return m.Dir == dir && m.InWork })
}

func (k *keyer) once(what string, counts func(name string) bool) (string, error) {
	if known, ok := k.sums[what]; ok {
		return known, nil
	}
	var parts []string
	for _, name := range k.files {
		if !counts(name) {
			continue
		}
		text, err := contents(k.ws.Path(name))
		if err != nil {
			return "", fmt.Errorf("read what a mutant depends on: %w", err)
		}
		parts = append(parts, name, text)
	}
	k.sums[what] = sum(parts...)
	return k.sums[what], nil
}

// contents is the text of a file, or where a link leads.
func contents(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return os.Readlink(file)
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// sum is the SHA-256 over the parts, each with its length, so that no two lists run into the same bytes.
func sum(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // it never fails
	}
	return hex.EncodeToString(hash.Sum(nil))
}
