// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
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
	parallel       = 4
	newestLines    = "50000"                    // of each log are read
	largestAsset   = 4 << 20                    // excludes archives and images
	kernelHostname = "proc/sys/kernel/hostname" // also one by DHCP
)

func (b *bundle) gather(ctx context.Context) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(parallel)
	_, notLive := os.Lstat(filepath.Join(b.Root, node.LiveSettings))
	switch {
	case b.NodeOnly:
		b.host(ctx, work, "", "", "containers", nodeUnits)
	case notLive == nil:
		b.host(ctx, work, "", "bootstrap", path.Join("bootstrap", "pods"), bootstrapUnits)
		b.tree("var/log/bootstrap-control-plane", "bootstrap/containers/bootstrap-control-plane")
		b.tree(node.LiveDir, "rendered-assets/openshift")
		b.resources(ctx, work)
	default:
		if err := b.phaseBundle(); err != nil {
			b.note(node.LogBundle, "missing or damaged, so there may be the logs of the node only: %v", err)
		}
		own := path.Join("control-plane", b.hostname())
		b.host(ctx, work, own, own, path.Join(own, "containers"), nodeUnits)
		b.resources(ctx, work)
	}
	_ = work.Wait() // of functions that return nil
}

func (b *bundle) hostname() string {
	text, err := os.ReadFile(filepath.Join(b.Root, kernelHostname))
	if name := strings.TrimSpace(string(text)); err == nil && validID.MatchString(name) {
		return name
	}
	return "master" // upstream's name for a single node
}

// host gathers the state of units, journals, the network and containers. Failed units are in folder top, Podman's
// containers in pods, the others in own.
func (b *bundle) host(ctx context.Context, work *errgroup.Group, top, own, pods string, units []string) {
	work.Go(func() error {
		failed := b.output(ctx, path.Join(top, "failed-units.txt"), "systemctl", "list-units", "--state=failed", "--no-pager", "--plain", "--no-legend")
		for line := range strings.Lines(string(failed)) {
			unit, _, _ := strings.Cut(line, " ")
			name := path.Join(top, "unit-status", unsafeName.ReplaceAllString(unit, "_"))
			b.output(ctx, name+".txt", "systemctl", "status", "--full", "--no-pager", "--", unit)
			b.output(ctx, name+".log", "journalctl", "--no-pager", "--lines="+newestLines, "--unit="+unit)
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
		b.tree(kernelHostname, path.Join(own, "network", "hostname.txt"))
		b.tree("etc/resolv.conf", path.Join(own, "network", "resolv.conf"))
		b.tree(node.StatusDir, path.Join(own, "status"))
		return nil
	})
	work.Go(func() error {
		b.containers(ctx, path.Join(own, "containers"), "crictl", "--output=json")
		b.containers(ctx, pods, "podman", "--format=json")
		return nil
	})
}

// output adds the output of a program, also of one that fails, and returns that of a program that does not.
func (b *bundle) output(ctx context.Context, name, program string, args ...string) []byte {
	var text bytes.Buffer
	err := b.run(ctx, name, &text, &text, program, args...)
	if err == nil || text.Len() > 0 {
		b.add(name, text.Bytes())
	}
	if err != nil {
		return nil
	}
	return text.Bytes()
}

// run runs a program, and notes its error.
func (b *bundle) run(ctx context.Context, name string, out, errs *bytes.Buffer, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = out, errs
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.WaitDelay = time.Second
	err := command.Run()
	if err != nil {
		b.note(name, "%s %s: %v: %s", program, strings.Join(args, " "), cmp.Or(context.Cause(ctx), err), bytes.TrimSpace(errs.Bytes()))
	}
	return err //nolint:wrapcheck // it is noted
}

var unsafeName = regexp.MustCompile(`[^\w.@-]+`)

// containers gathers logs and state of the containers that a program lists.
func (b *bundle) containers(ctx context.Context, folder, program, format string) {
	var text, errs bytes.Buffer
	if b.run(ctx, folder, &text, &errs, program, "ps", "--all", format) != nil {
		return
	}
	list := bytes.TrimSpace(text.Bytes())
	if bytes.HasPrefix(list, []byte("[")) { // of podman
		list = slices.Concat([]byte(`{"containers":`), list, []byte("}"))
	}
	var parsed struct {
		Containers []struct {
			ID       string   `json:"id"` // Id of podman is the same in any case
			Names    []string `json:"names"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"containers"`
	}
	if err := json.Unmarshal(list, &parsed); err != nil {
		b.note(folder, "%s: %v", program, err)
	}
	for _, c := range parsed.Containers {
		if !validID.MatchString(c.ID) {
			continue
		}
		name := unsafeName.ReplaceAllString(strings.Join(append(c.Names, c.Metadata.Name), "_"), "_")
		name = path.Join(folder, strings.TrimSuffix(name, "_")+"-"+c.ID)
		b.output(ctx, name+".log", program, "logs", "--tail="+newestLines, c.ID)
		b.output(ctx, name+".inspect", program, "inspect", c.ID)
	}
}

// withSecrets matches an object of a kind that has credentials, or a config with whole files of them.
var withSecrets = regexp.MustCompile(`(?m)\bkind["']?\s*:\s*["']?(?:Secret|Config|MachineConfig|ControllerConfig|EncryptionConfiguration|OAuthClient|OAuthAccessToken|OAuthAuthorizeToken)(?:List)?["']?\s*(?:[,}#]|$)`)

// tree adds a file, or the files of a folder, except the outputs of renders, whose manifests are in one folder.
func (b *bundle) tree(from, to string) {
	root := os.DirFS(b.Root)
	_ = fs.WalkDir(root, from, func(file string, entry fs.DirEntry, err error) error {
		name := path.Join(to, strings.TrimPrefix(file, from))
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		var text []byte
		switch {
		case err != nil:
		case entry.IsDir() && (secretFile.MatchString(name) || slices.Contains(payload.Outputs(), entry.Name())):
			b.note(name, "omitted: its name indicates secrets, or a copy of rendered manifests")
			return fs.SkipDir
		case !entry.Type().IsRegular(), strings.HasSuffix(file, ".lock"):
			return nil
		case info.Size() > largestAsset:
			b.note(name, "omitted: it has %d bytes", info.Size())
			return nil
		default:
			text, err = fs.ReadFile(root, file)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			b.note(name, "%v", err)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) && withSecrets.Match(text):
			b.note(name, "omitted: it has an object of a kind with secrets")
		default:
			b.add(name, text)
		}
		return nil
	})
}

// phaseBundle adds the files of the bootstrap phase's bundle, in the folder that openshift-install reads.
func (b *bundle) phaseBundle() error {
	file, err := os.Open(filepath.Join(b.Root, node.LogBundle))
	if err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	defer file.Close() //nolint:errcheck // it was read
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	archive := tar.NewReader(unzipped)
	for header, err := archive.Next(); !errors.Is(err, io.EOF); header, err = archive.Next() {
		if err != nil {
			return err //nolint:wrapcheck // the caller names the file
		}
		text, err := io.ReadAll(io.LimitReader(archive, 2*largestFile))
		if err != nil {
			return err //nolint:wrapcheck // the caller names the file
		}
		if header.Typeflag == tar.TypeReg && filepath.IsLocal(header.Name) {
			b.add(path.Clean(header.Name), text)
		}
	}
	return nil
}
