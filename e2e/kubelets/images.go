// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/e2e/release"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/images"
)

// Nodes load images, all of them the same.
type Nodes interface {
	Load(ctx context.Context, archive string) error
	Tag(ctx context.Context, image string, names ...string) error
	// Pack writes a layer with programs of a node.
	Pack(ctx context.Context, file string, programs ...string) error
}

const doNothing = "registry.k8s.io/pause:3.10"

// controllerImages builds the controllers' images into an archive of the cache, and returns their names.
func controllerImages(ctx context.Context) (archive string, names map[programs.Program]string) {
	GinkgoHelper()
	folder := cacheFolder(ctx)
	defer lock(ctx, "images")()
	names = map[programs.Program]string{}
	var all []images.Image
	sum := sha256.New()
	// No cluster here is a hub.
	own := slices.DeleteFunc(programs.Shipped(), func(p programs.Program) bool { return p == programs.FleetController })
	for _, one := range suite.Must(release.Build(ctx, folder, release.ImageOptions{Programs: own, Progress: GinkgoWriter})) {
		_, _ = io.WriteString(sum, one.Image.Name) // a hash takes everything
		names[one.Program] = one.Image.Name
		all = append(all, one.Image)
	}
	archive = filepath.Join(folder, "images-"+hex.EncodeToString(sum.Sum(nil)[:6])+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, names
	}
	for _, file := range suite.Must(filepath.Glob(filepath.Join(folder, "images-*.tar"))) {
		_ = os.Remove(file) // unused
	}
	Expect(images.Write(archive, all...)).To(Succeed())
	return archive, names
}

// cacheFolder returns a folder of the cache, one for each checkout.
func cacheFolder(ctx context.Context) string {
	GinkgoHelper()
	checkout := sha256.Sum256([]byte(suite.Must(programs.Root(ctx))))
	folder := filepath.Join(filepath.Dir(suite.Must(assets.CacheDir())), "kind", "controllers-"+hex.EncodeToString(checkout[:6]))
	Expect(assets.CheckoutFolder(folder, "controllers-*")).To(Succeed())
	return folder
}

// lock waits for a lock among the processes of this checkout.
func lock(ctx context.Context, name string) (unlock func()) {
	GinkgoHelper()
	file := flock.New(filepath.Join(cacheFolder(ctx), name+".lock"))
	Expect(suite.Must(file.TryLockContext(ctx, poll))).To(BeTrue(), "the lock %s", name)
	return func() { _ = file.Unlock() }
}

// operandImages loads the images of the stand-ins' pods, whose names are only used on these clusters. Most do nothing;
// a guard of etcd runs curl, and the approver waits.
func operandImages(ctx context.Context, c Nodes, folder string) {
	GinkgoHelper()
	var names []string
	for _, short := range []string{"router", "console", "downloads", "oauth-openshift", "oauth-apiserver", "kube-rbac-proxy"} {
		names = append(names, FullImageName(short))
	}
	Expect(c.Tag(ctx, doNothing, names...)).To(Succeed())
	layer := filepath.Join(folder, "cli-layer.tar")
	Expect(c.Pack(ctx, layer, "/bin/bash", "/usr/bin/curl", "/usr/bin/sleep")).To(Succeed())
	load := func(name string, files map[string]string) {
		archive := filepath.Join(folder, name+".tar")
		Expect(images.Write(archive, images.Image{Name: FullImageName(name), Tar: layer, Files: files})).To(Succeed())
		Expect(c.Load(ctx, archive)).To(Succeed())
	}
	load("cli", nil)
	// The stock approver's command is a path.
	program := filepath.Join(folder, "machine-approver")
	Expect(os.WriteFile(program, []byte("#!/bin/bash\ntrap 'exit 0' TERM\nsleep infinity & wait\n"), 0o755)).To(Succeed()) //nolint:gosec // it is a program
	load("machine-approver", map[string]string{"usr/bin/machine-approver": program})
}

// FullImageName returns the full name of an image that the stand-ins name by one word and a tag: an image without a tag
// would be pulled each time.
func FullImageName(short string) string { return "docker.io/library/" + short + ":1" }
