// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/payload"
)

var (
	// bootstrapUnits and nodeUnits are the units whose journals are gathered: upstream's, and those of sno-install.
	bootstrapUnits = []string{"release-image", "crio-configure", "bootkube", "kubelet", "crio", "approve-csr", "aiokube"}
	nodeUnits      = []string{"kubelet", "crio", "machine-config-daemon-host", "pivot", "bootkube", "aiokube", "etcd-restore", "post-reboot"}
)

const (
	parallel = 4
	// newestLines of each log are read.
	newestLines = "50000"
)

// kernelHostname has the hostname, also one by DHCP.
const kernelHostname = "proc/sys/kernel/hostname"

func (b *bundle) gather(ctx context.Context) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(parallel)
	live := exists(b.path(node.LiveSettings))
	switch {
	case b.NodeOnly:
		b.host(ctx, work, "", "", "containers", nodeUnits)
	case live:
		b.host(ctx, work, "", "bootstrap", path.Join("bootstrap", "pods"), bootstrapUnits)
		b.tree(ctx, "var/log/bootstrap-control-plane", "bootstrap/containers/bootstrap-control-plane")
		b.tree(ctx, node.LiveDir, "rendered-assets/openshift")
		b.resources(ctx, work)
	default:
		b.phaseBundle(ctx)
		own := path.Join("control-plane", b.hostname())
		b.host(ctx, work, own, own, path.Join(own, "containers"), nodeUnits)
		b.resources(ctx, work)
	}
	_ = work.Wait() // of functions that return nil
}

func (b *bundle) path(name string) string { return filepath.Join(b.Root, name) }

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func (b *bundle) hostname() string {
	if s, err := node.Read(b.path(node.BootstrapSettings)); err == nil && validID.MatchString(s.Name) {
		return s.Name
	}
	if text, err := os.ReadFile(b.path(kernelHostname)); err == nil {
		if name := strings.TrimSpace(string(text)); validID.MatchString(name) {
			return name
		}
	}
	return "master" // upstream's name for a single node
}

// host gathers the state of units, journals, the network and containers. Failed units are in folder top, Podman's
// containers in pods, the others in own.
func (b *bundle) host(ctx context.Context, work *errgroup.Group, top, own, pods string, units []string) {
	work.Go(func() error {
		failed := b.output(ctx, path.Join(top, "failed-units.txt"), "systemctl", "list-units", "--state=failed", "--no-pager")
		for _, unit := range failedUnits(failed) {
			b.output(ctx, path.Join(top, "unit-status", unit+".txt"), "systemctl", "status", "--full", "--no-pager", unit)
			b.output(ctx, path.Join(top, "unit-status", unit+".log"), "journalctl", "--no-pager", "--lines="+newestLines, "--unit="+unit)
		}
		return nil
	})
	for _, unit := range units {
		work.Go(func() error {
			b.output(ctx, path.Join(own, "journals", unit+".log"), "journalctl", "--boot", "--no-pager", "--output=short", "--lines="+newestLines, "--unit="+unit)
			return nil
		})
	}
	work.Go(func() error {
		b.output(ctx, path.Join(own, "network", "ip-addr.txt"), "ip", "addr")
		b.output(ctx, path.Join(own, "network", "ip-route.txt"), "ip", "route")
		b.copy(ctx, kernelHostname, path.Join(own, "network", "hostname.txt"))
		b.copy(ctx, "etc/resolv.conf", path.Join(own, "network", "resolv.conf"))
		b.tree(ctx, node.StatusDir, path.Join(own, "status"))
		return nil
	})
	work.Go(func() error {
		b.containers(ctx, path.Join(own, "containers"), "crictl", "--output=json")
		b.containers(ctx, pods, "podman", "--format=json")
		return nil
	})
}

// run runs a program and returns its output, also after an error. With separate, standard error is only in the error.
func (b *bundle) run(ctx context.Context, separate bool, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(b.Programs, program), args...)
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.WaitDelay = time.Second
	run := command.CombinedOutput
	if separate {
		run = command.Output
	}
	text, err := run()
	exit := new(exec.ExitError)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("stopped after %s: %w", b.Timeout, context.Cause(ctx))
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return text, err //nolint:wrapcheck // the caller names the program
}

func (b *bundle) output(ctx context.Context, name, program string, args ...string) []byte {
	text, err := b.run(ctx, false, program, args...)
	if err != nil {
		b.note("%s: %s %s: %v", name, program, strings.Join(args, " "), err)
	}
	if err == nil || len(text) > 0 {
		b.add(ctx, name, text)
	}
	return text
}

var unitName = regexp.MustCompile(`^[\w:.@\\-]+\.(?:service|socket|mount|target|timer|path|device|swap|slice|scope|automount)$`)

// failedUnits returns the units in systemctl's list. Some versions print a mark before each.
func failedUnits(list []byte) []string {
	var units []string
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) > 0 && !unitName.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 2 && unitName.MatchString(words[0]) && slices.Contains(words, "failed") {
			units = append(units, words[0])
		}
	}
	return units
}

var unsafeName = regexp.MustCompile(`[^\w.-]+`)

// containers gathers logs and state of the containers that a program lists.
func (b *bundle) containers(ctx context.Context, folder, program, format string) {
	args := []string{"ps", "--all", format}
	text, err := b.run(ctx, true, program, args...)
	type container struct {
		ID       string   `json:"id"` // Id of podman is the same in any case
		Names    []string `json:"names"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	var list struct {
		Containers []container `json:"containers"`
	}
	if err == nil {
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
			err = json.Unmarshal(text, &list.Containers)
		} else {
			err = json.Unmarshal(text, &list)
		}
	}
	if err != nil {
		b.note("containers: %s %s: %v", program, strings.Join(args, " "), err)
	}
	for _, c := range list.Containers {
		if !validID.MatchString(c.ID) {
			continue
		}
		name := unsafeName.ReplaceAllString(strings.Join(append(c.Names, c.Metadata.Name), "_"), "_")
		name = path.Join(folder, strings.TrimSuffix(name, "_")+"-"+c.ID)
		b.output(ctx, name+".log", program, "logs", "--tail="+newestLines, c.ID)
		b.output(ctx, name+".inspect", program, "inspect", c.ID)
	}
}

func (b *bundle) copy(ctx context.Context, from, to string) {
	text, err := os.ReadFile(b.path(from))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		b.note("%s: %v", to, err)
	case withSecrets.Match(text) && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(from)):
		b.note("%s: omitted: it has an object of a kind with secrets", to)
	default:
		b.add(ctx, to, text)
	}
}

// withSecrets matches an object that may be nothing but a secret, such as a kubeconfig in a MachineConfig.
var withSecrets = regexp.MustCompile(`(?m)^\s*(?:- )?["']?kind["']?:\s*["']?(?:Secret|MachineConfig)(?:List)?\b`)

// largestAsset excludes archives and images.
const largestAsset = 4 << 20

// tree adds the files of a folder, except the outputs of renders, whose manifests are in one folder.
func (b *bundle) tree(ctx context.Context, from, to string) {
	top := b.path(from)
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		name := path.Join(to, filepath.ToSlash(strings.TrimPrefix(file, top)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			b.note("%s: %v", name, err)
			return nil
		case entry.IsDir() && slices.Contains(payload.Outputs(), entry.Name()):
			return fs.SkipDir
		case entry.IsDir() && secretByName(entry.Name()) != "":
			b.note("%s: omitted: its name indicates secrets", name)
			return fs.SkipDir
		case !entry.Type().IsRegular(), strings.HasSuffix(file, ".lock"):
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Size() > largestAsset {
			b.note("%s: omitted: it has %d bytes", name, info.Size())
			return nil
		}
		relative, _ := filepath.Rel(b.Root, file)
		b.copy(ctx, relative, name)
		return nil
	})
	if err != nil {
		b.note("%s: %v", to, err)
	}
}

// phaseBundle adds the files of the bootstrap phase's bundle, in the folder that openshift-install reads.
func (b *bundle) phaseBundle(ctx context.Context) {
	err := b.unpack(ctx, b.path(node.LogBundle))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.note("%s: not found, so the bundle has the logs of the node only", node.LogBundle)
	case err != nil:
		b.note("%s: %v", node.LogBundle, err)
	}
}

func (b *bundle) unpack(ctx context.Context, file string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	defer opened.Close() //nolint:errcheck // it was read
	unzipped, err := gzip.NewReader(opened)
	if err != nil {
		return fmt.Errorf("is damaged: %w", err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("is damaged: %w", err)
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(archive, 2*largestFile))
		if err != nil {
			return fmt.Errorf("is damaged: %w", err)
		}
		b.add(ctx, path.Clean(header.Name), text)
	}
}
