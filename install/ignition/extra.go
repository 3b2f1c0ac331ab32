// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/solonode/sno/render/files"
)

// ErrExtra is in the error of an unsupported file in an extra folder.
var ErrExtra = errors.New("not supported in an extra folder")

const extraForm = "an extra folder has units/NAME.service with units/NAME.service.d/*.conf, files/ with a tree for /, and kernel-arguments/*.conf with a line for each argument"

// AddExtra adds a user's folder of units, files and kernel arguments, see the package's documentation. The kernel
// arguments are returned and not added. Any other file is an ErrExtra.
func (b *Builder) AddExtra(name string, folder fs.FS) (kernelArguments []string, err error) {
	var errs []error
	err = fs.WalkDir(folder, ".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			errs = append(errs, fmt.Errorf("%s: %w: not a regular file", path.Join(name, p), ErrExtra))
			return nil
		}
		arguments, err := b.extra(name, folder, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path.Join(name, p), err))
		}
		kernelArguments = append(kernelArguments, arguments...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return kernelArguments, errors.Join(errs...)
}

func (b *Builder) extra(name string, folder fs.FS, p string) ([]string, error) {
	info, err := fs.Stat(folder, p)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file, and the caller the folder
	}
	content, err := fs.ReadFile(folder, p)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file, and the caller the folder
	}
	source := path.Join(name, p)
	top, rest, _ := strings.Cut(p, "/")
	dir, base := path.Split(rest)
	switch {
	case top == "files" && rest != "":
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			return nil, fmt.Errorf("%w: set-user-ID, set-group-ID and sticky bits are not kept", ErrExtra)
		}
		b.AddFile(source, files.File{Path: rest, Mode: info.Mode().Perm(), Content: content})
	case top == "units" && dir == "" && base != "":
		b.AddUnit(source, base, string(content))
	case top == "units" && strings.HasSuffix(dir, ".d/") && strings.Count(dir, "/") == 1 && path.Ext(base) == ".conf":
		b.AddDropIn(source, strings.TrimSuffix(dir, ".d/"), base, string(content))
	case top == "kernel-arguments" && dir == "" && path.Ext(base) == ".conf":
		return kernelArgumentsOf(string(content)), nil
	default:
		return nil, fmt.Errorf("%w: %s", ErrExtra, extraForm)
	}
	return nil, nil
}

func kernelArgumentsOf(text string) []string {
	var arguments []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			arguments = append(arguments, line)
		}
	}
	return arguments
}
