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
	"slices"
	"strings"
	"syscall"

	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/snapshot"
)

func (l *live) render(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if ofRelease(s) {
		return l.renderRelease(ctx, p, s)
	}
	return l.Render(ctx, p) //nolint:wrapcheck // it names the phase's input
}

// writePods starts the control plane and, of a release, the machine-config server.
func (l *live) writePods(context.Context, *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if !ofRelease(s) {
		return l.WriteStaticPods() //nolint:wrapcheck // it names the file
	}
	list, err := configServer(l.assets())
	if err != nil {
		return fmt.Errorf("the machine-config server: %w", err)
	}
	loopback, err := os.ReadFile(l.Path(node.Rendered + "/" + controlplane.Kubeconfig))
	if err != nil {
		return fmt.Errorf("the kubeconfig of the static pods: %w", err)
	}
	if err := os.MkdirAll(l.Path(serverDir+"/bootstrap"), 0o700); err != nil {
		return fmt.Errorf("the machine-config server: %w", err)
	}
	// The cluster-version operator and kube-controller-manager mount these two.
	for _, name := range []string{node.KubeletBootstrap, node.BootstrapKubeconfig} {
		list = append(list, files.File{Path: name, Mode: 0o600, Content: loopback})
	}
	if err := l.WriteFiles(list...); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return l.WriteStaticPods() //nolint:wrapcheck // it names the file
}

func (l *live) apply(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if ofRelease(s) {
		// The cluster-version operator would make a ClusterVersion of its own. It brings the definitions of the operators'
		// resources, for which the second half waits.
		if _, err := l.Apply(ctx, p, firstManifests); err != nil {
			return err //nolint:wrapcheck // it names every manifest
		}
		pods, err := operatorPods(l.assets())
		if err == nil {
			err = l.WriteFiles(pods...)
		}
		if err != nil {
			return fmt.Errorf("start the cluster-version operator: %w", err)
		}
	}
	count, err := l.Apply(ctx, p, otherManifests)
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

// stopControlPlane stops all that writes to etcd, first the operators of a release.
func (l *live) stopControlPlane(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	pods := node.StaticPods[1:]
	if ofRelease(s) {
		operators, err := operatorPods(l.assets())
		if err != nil {
			return fmt.Errorf("stop the operators: %w", err)
		}
		pods = append([]string{configServerPod}, pods...)
		for _, f := range operators {
			pods = append([]string{path.Base(f.Path)}, pods...)
		}
	}
	return l.stop(ctx, p, pods, l.o.Endpoints.Ports)
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
	s, err := l.Settings()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	certificate, key, authority := node.BootstrapSecrets+"/etcd-client.crt", node.BootstrapSecrets+"/etcd-client.key", node.BootstrapSecrets+"/etcd-ca-bundle.crt"
	if !ofRelease(s) {
		const pattern = node.ResourceDir + "/kube-apiserver-pod-*"
		found, err := fs.Glob(os.DirFS(l.Root), pattern)
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%w: %s: %v", errCertificate, pattern, found)
		}
		certificate, key, authority = found[0]+"/secrets/etcd-client/tls.crt", found[0]+"/secrets/etcd-client/tls.key", found[0]+"/configmaps/etcd-serving-ca/ca-bundle.crt"
	}
	own, err := tls.LoadX509KeyPair(l.Path(certificate), l.Path(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCertificate, err)
	}
	servers, err := cert.NewPool(l.Path(authority))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCertificate, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: servers, MinVersion: tls.VersionTLS12}, nil
}
