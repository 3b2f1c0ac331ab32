// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/snapshot"
)

const imageReferences = node.ReleaseManifests + "/image-references"

// payload runs the release's cluster-version operator, which writes the release's manifests (U-INS-5), all of them or
// none.
func (l *live) payload(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil || s.Profile != string(inputs.OpenShift) {
		return err
	}
	if there, err := l.FileExists(imageReferences)(ctx); err != nil || there {
		return err
	}
	part := l.Path(node.ReleaseManifests + ".part")
	return p.Until(ctx, l.Interval, "the release payload "+s.ReleaseImage, func(ctx context.Context) error {
		if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o700)); err != nil {
			return fmt.Errorf("read the release payload: %w", err)
		}
		const script = `cp /release-manifests/image-references /out/ && exec cluster-version-operator render --output-dir=/out --release-image="$1"`
		if err := l.command(ctx, l.o.Podman, "run", "--rm", "--authfile", l.Path(node.PullSecret), "--volume", part+":/out:z", "--entrypoint", "/bin/sh",
			s.ReleaseImage, "-ec", script, "sh", s.ReleaseImage); err != nil {
			return err
		}
		if err := os.Rename(part, l.Path(node.ReleaseManifests)); err != nil {
			return fmt.Errorf("read the release payload: %w", err)
		}
		return nil
	})
}

// references returns the file with the images of the release payload, "" in profile kubernetes.
func references(s *node.Settings) string {
	if s.Profile == string(inputs.OpenShift) {
		return imageReferences
	}
	return ""
}

func (l *live) render(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return l.Render(ctx, p, references(s)) //nolint:wrapcheck // it names the phase's input
}

func (l *live) writePods(context.Context, *phase.Progress) error { return l.WriteStaticPods() } //nolint:wrapcheck // it names the file

func (l *live) apply(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	var more []string
	if references(s) != "" {
		more = append(more, node.ReleaseManifests+"/manifests")
	}
	count, err := l.Apply(ctx, p, more...)
	if err != nil {
		return err //nolint:wrapcheck // it names every manifest
	}
	return l.WriteFiles(files.File{Path: applied, Mode: 0o600, Content: fmt.Appendf(nil, "%d objects and statuses\n", count)}) //nolint:wrapcheck // it names the file
}

// bundleLimit limits the logs in the config, which Ignition holds in memory.
const bundleLimit = 16 << 20

// gather saves the logs of this phase, which are only in memory (R-BIP-23).
func (l *live) gather(ctx context.Context, _ *phase.Progress) error {
	return gather.File(ctx, l.Path(node.LiveLogBundle), gather.Options{Root: l.Root, ID: "bootstrap", Limit: bundleLimit}) //nolint:wrapcheck // it names the file
}

func (l *live) stopControlPlane(ctx context.Context, p *phase.Progress) error {
	return l.stop(ctx, p, node.StaticPods[1:], l.o.Endpoints.Ports)
}

func (l *live) stopEtcd(ctx context.Context, p *phase.Progress) error {
	return l.stop(ctx, p, node.StaticPods[:1], []string{l.o.Endpoints.EtcdPort})
}

// stop removes manifests and waits until nothing listens on the ports.
func (l *live) stop(ctx context.Context, p *phase.Progress, pods, ports []string) error {
	for _, name := range pods {
		if err := os.Remove(l.Path(path.Join(node.ManifestDir, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("stop a static pod: %w", err)
		}
	}
	return p.Until(ctx, l.Interval, fmt.Sprintf("the end of %v", pods), func(ctx context.Context) error {
		for _, port := range ports {
			var dialer net.Dialer
			connection, err := dialer.DialContext(ctx, "tcp", port)
			if err == nil {
				_ = connection.Close()
				return fmt.Errorf("%s: %w", port, errListens)
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("%s: %w", port, err)
			}
		}
		return nil
	})
}

var errListens = errors.New("something still listens")

func (l *live) hasSnapshot(ctx context.Context) (bool, error) {
	there, err := l.FileExists(node.LiveSnapshot)(ctx)
	if err != nil || !there {
		return false, err
	}
	_, err = snapshot.Verify(l.Path(node.LiveSnapshot))
	if errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNoSnapshot) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // it names the file
}

// leases is the prefix of Leases, with the prefix that kube-apiserver is rendered with. Their holders have ended. The
// next leader would wait until the Lease expires nevertheless, because leader election does not trust other clocks.
const leases = "/kubernetes.io/leases/"

// save saves etcd's data without the Leases (R-BIP-10), after all other writers have stopped. It starts etcd again if
// an earlier run had stopped it and its snapshot was damaged since.
func (l *live) save(ctx context.Context, p *phase.Progress) error {
	list, err := l.StaticPodFiles()
	if err != nil {
		return err
	}
	etcd := path.Join(node.ManifestDir, node.StaticPods[0])
	if err := l.WriteFiles(slices.DeleteFunc(list, func(f files.File) bool { return f.Path != etcd })...); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	var client *tls.Config
	if strings.HasPrefix(l.o.Endpoints.Etcd, "https:") {
		if client, err = l.etcdClient(); err != nil {
			return err
		}
	}
	return p.Until(ctx, l.Interval, "a snapshot of etcd at "+l.o.Endpoints.Etcd, func(ctx context.Context) error {
		if err := snapshot.DeletePrefix(ctx, l.o.Endpoints.Etcd, client, leases); err != nil {
			return err //nolint:wrapcheck // it names the keys
		}
		return snapshot.Save(ctx, l.o.Endpoints.Etcd, client, l.Path(node.LiveSnapshot))
	})
}

// errCertificate is in the error of a missing client certificate for etcd.
var errCertificate = errors.New("kube-apiserver's certificate for etcd is missing")

func (l *live) etcdClient() (*tls.Config, error) {
	const pattern = node.ResourceDir + "/kube-apiserver-pod-*"
	found, err := filepath.Glob(l.Path(pattern))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%w: %s: %v", errCertificate, pattern, found)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(found[0], "secrets/etcd-client/tls.crt"), filepath.Join(found[0], "secrets/etcd-client/tls.key"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCertificate, err)
	}
	servers, err := cert.NewPool(filepath.Join(found[0], "configmaps/etcd-serving-ca/ca-bundle.crt"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCertificate, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: servers, MinVersion: tls.VersionTLS12}, nil
}
