// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/solonode/sno/install/node"
)

// Kind is a kind of leftover.
type Kind string

// Kinds of leftovers.
const (
	File        Kind = "file"
	Folder      Kind = "folder"
	Unit        Kind = "unit"
	Link        Kind = "link"
	Preset      Kind = "preset"
	Image       Kind = "image"
	Certificate Kind = "certificate"
)

// Leftover is an object that the installation has left.
type Leftover struct {
	Kind Kind
	// Path is absolute, below the machine's root, or the reference of an image.
	Path string
	Why  string
}

// Options of Check.
type Options struct {
	// Images are references that only the bootstrap phase needs, as crictl prints them. Without any, crictl is not called.
	Images []string
}

// Upstream's unit after the restart, and its program.
const (
	upstreamProgram = "usr/local/bin/bootstrap-in-place-post-reboot.sh"
	upstreamUnit    = "bootkube.service"
)

var (
	// fixed are paths that must not exist.
	fixed = []struct{ path, why string }{
		{node.LiveDir, "files of the live system"},
		{node.SnapshotDir, "the snapshot from which etcd was restored"},
		{node.EtcdData + "/.restoring", "a partly restored member of etcd"},
		{node.LogBundle, "logs of the bootstrap phase"},
		{node.GatherScript, "gathers logs during the installation"},
		{node.MastersGatherScript, "gathers logs during the installation"},
		{node.UnitDir + "/kubelet.service.d/" + node.RestoreDropIn, "makes the kubelet wait for " + node.RestoreUnit},
		{upstreamProgram, "the program of " + upstreamUnit},
	}
	// units are the units of the installation, with their purposes.
	units = map[string]string{
		node.RestoreUnit:    "restores etcd from the snapshot",
		node.PostRebootUnit: "finishes the installation after the restart",
		upstreamUnit:        "finishes the installation after the restart, with upstream's installer",
	}
)

// Check returns the leftovers below root, sorted by path. The error has what cannot be read; the leftovers are complete
// otherwise (R-BIP-2, R-BIP-26, U-INS-15).
func Check(ctx context.Context, root string, o Options) ([]Leftover, error) {
	c := &check{root: root}
	// A folder that is not a machine's root would have no leftovers.
	if _, err := os.Stat(c.path("etc")); err != nil {
		return nil, fmt.Errorf("find leftovers: the root folder of a machine has a folder etc: %w", err)
	}
	err := errors.Join(c.fixed(), c.bootstrap(), c.units(), c.preset(), c.certificates(), c.images(ctx, o))
	if err != nil {
		err = fmt.Errorf("find leftovers: %w", err)
	}
	slices.SortFunc(c.found, func(a, b Leftover) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Why, b.Why))
	})
	return slices.Compact(c.found), err
}

// Print prints a table of leftovers, or that there are none.
func Print(w io.Writer, found []Leftover) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	if len(found) == 0 {
		fmt.Fprintln(table, "Nothing of the installation is left.")
	} else {
		fmt.Fprintln(table, "KIND\tPATH\tWHY")
	}
	for _, l := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\n", l.Kind, l.Path, l.Why)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the leftovers: %w", err)
	}
	return nil
}

type check struct {
	root  string
	found []Leftover
}

func (c *check) path(name string) string { return filepath.Join(c.root, name) }

func (c *check) add(kind Kind, name, why string) {
	c.found = append(c.found, Leftover{kind, "/" + name, why})
}

// at adds the object at a path, including a broken link. Without a kind it is a file or a folder.
func (c *check) at(kind Kind, name, why string) error {
	info, err := os.Lstat(c.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err //nolint:wrapcheck // it names the path
	case kind == "" && info.IsDir():
		kind = Folder
	case kind == "":
		kind = File
	}
	c.add(kind, name, why)
	return nil
}

func (c *check) entries(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(c.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err //nolint:wrapcheck // it names the folder
}

func (c *check) fixed() error {
	var errs []error
	for _, p := range fixed {
		errs = append(errs, c.at("", p.path, p.why))
	}
	// An image has it at node.ImageProgram instead.
	errs = append(errs, c.at("", node.Program, "the installer"))
	return errors.Join(errs...)
}

// kubernetesDir is the folder of the kubelet and of static pods. bootstrapPrefix is the prefix of the installation's
// names in it: node.BootstrapConfigs, node.BootstrapSecrets, and upstream's.
const (
	kubernetesDir   = "etc/kubernetes"
	bootstrapPrefix = "bootstrap-"
)

func (c *check) bootstrap() error {
	entries, err := c.entries(kubernetesDir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), bootstrapPrefix) {
			err = errors.Join(err, c.at("", path.Join(kubernetesDir, e.Name()), "configs, secrets or markers of the bootstrap phase"))
		}
	}
	return err
}

func (c *check) units() error {
	dirs := []string{node.UnitDir}
	entries, err := c.entries(node.UnitDir)
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".wants" || ext == ".requires" {
			dirs = append(dirs, path.Join(node.UnitDir, e.Name()))
		}
	}
	for i, dir := range dirs {
		kind := Link
		if i == 0 {
			kind = Unit
		}
		for unit, why := range units {
			err = errors.Join(err, c.at(kind, path.Join(dir, unit), why))
		}
	}
	return err
}

func (c *check) preset() error {
	text, err := os.ReadFile(c.path(node.Preset))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // it names the file
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) > 1 && units[words[1]] != "" {
			c.add(Preset, node.Preset, fmt.Sprintf("has the line %q", strings.TrimSpace(line)))
		}
	}
	return nil
}

func (c *check) images(ctx context.Context, o Options) error {
	if len(o.Images) == 0 {
		return nil
	}
	const program = "crictl"
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, "images", "--output=json")
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("list images with %s: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	var list struct {
		Images []struct {
			RepoTags    []string `json:"repoTags"`
			RepoDigests []string `json:"repoDigests"`
		} `json:"images"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
		return fmt.Errorf("list images with %s: %w", program, err)
	}
	for _, image := range list.Images {
		for _, reference := range slices.Concat(image.RepoTags, image.RepoDigests) {
			if slices.Contains(o.Images, reference) {
				c.found = append(c.found, Leftover{Image, reference, "only the bootstrap phase needs it"})
			}
		}
	}
	return nil
}
