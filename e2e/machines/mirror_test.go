// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/images"
)

// etcdImage has a name of its own, because the default one changes with Kubernetes.
const etcdImage = "registry.invalid/sno/etcd:test"

const mirrorConfig = `[[registry]]
location = "registry.k8s.io"
[[registry.mirror]]
location = "%[1]s"
insecure = true
[[registry]]
location = "registry.invalid"
[[registry.mirror]]
location = "%[1]s"
insecure = true
`

// serveImages serves the images of the control plane by a registry that is the mirror of the node.
func (m *machine) serveImages(ctx context.Context) {
	m.serveMirror(ctx)
	bin := suite.Must(assets.Ensure(ctx, GinkgoWriter)).Dir
	var all []images.Image
	for program, named := range map[string]string{
		"etcd": etcdImage, "kube-apiserver": "registry.k8s.io/kube-apiserver:" + version,
		"kube-controller-manager": "registry.k8s.io/kube-controller-manager:" + version, "kube-scheduler": "registry.k8s.io/kube-scheduler:" + version,
	} {
		all = append(all, images.Image{Name: named, Files: map[string]string{"usr/local/bin/" + program: filepath.Join(bin, program)}})
	}
	m.push(ctx, all...)
}

// serveMirror serves the image of pods by a registry, and makes it the mirror of the node and of the live system.
func (m *machine) serveMirror(ctx context.Context) {
	var config net.ListenConfig
	listener := suite.Must(config.Listen(ctx, "tcp", net.JoinHostPort(m.gateway, "0")))
	Expect(os.MkdirAll(m.path("blobs"), 0o755)).To(Succeed())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(m.path("blobs"))), registry.Logger(log.New(io.Discard, "", 0)))}
	context.AfterFunc(m.lifetime, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	m.mirror = listener.Addr().String()
	for _, folder := range []string{"extra", "live"} {
		m.write(map[string]string{folder + "/files/etc/containers/registries.conf.d/10-mirror.conf": fmt.Sprintf(mirrorConfig, m.mirror)})
	}
	m.push(ctx, images.Image{
		Name: pause, Files: map[string]string{"pause": suite.Must(programs.Build(ctx, programs.Pause, GinkgoWriter))}, Entrypoint: []string{"/pause"}, User: images.NonRootUser,
	})
}

// push writes images to the mirror, and returns their names by digest.
func (m *machine) push(ctx context.Context, all ...images.Image) []string {
	archive := m.path("images/pushed.tar")
	Expect(os.MkdirAll(filepath.Dir(archive), 0o755)).To(Succeed())
	Expect(images.Write(archive, all...)).To(Succeed())
	var names []string
	for _, i := range all {
		tag := suite.Must(name.NewTag(i.Name))
		to := suite.Must(name.NewTag(m.mirror+"/"+tag.RepositoryStr()+":"+tag.TagStr(), name.Insecure))
		written := suite.Must(tarball.ImageFromPath(archive, &tag))
		Expect(remote.Write(to, written, remote.WithContext(ctx))).To(Succeed(), i.Name)
		names = append(names, tag.Context().Name()+"@"+suite.Must(written.Digest()).String())
	}
	return names
}
