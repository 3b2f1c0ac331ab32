// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/payload"
	"github.com/solonode/sno/install/phase"
)

// Folders of node.Rendered in profile openshift: what the cluster-version operator needs, and the rest.
const (
	firstManifests = node.Rendered + "/first"
	otherManifests = node.Rendered + "/manifests"
)

func ofRelease(s *node.Settings) bool { return s.Profile == string(inputs.OpenShift) }

func (l *live) renderer() payload.Renderer {
	return payload.Renderer{Podman: l.o.Podman, PullSecret: l.Path(node.PullSecret), Assets: l.Path(node.LiveDir), Output: l.Output}
}

func (l *live) assets() fs.FS { return os.DirFS(l.Path(node.LiveDir)) }

// final reports what a repetition does not change. A pull or a command that hangs is repeated.
func final(err error) error {
	for _, is := range []error{payload.ErrPayload, payload.ErrTag, payload.ErrFlag, payload.ErrMissing, payload.ErrDifferent, payload.ErrRefused, manifests.ErrManifest} {
		if errors.Is(err, is) {
			return fmt.Errorf("%w: %w", err, phase.ErrInput)
		}
	}
	return err
}

// payload reads what the release has.
func (l *live) payload(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil || !ofRelease(s) {
		return err
	}
	return p.Until(ctx, l.Interval, "the release payload "+s.ReleaseImage, func(ctx context.Context) error {
		_, err := l.renderer().Release(ctx, s.ReleaseImage)
		return final(err)
	})
}

// renderRelease has the operators of the release render, and writes the result as sno-render would.
func (l *live) renderRelease(ctx context.Context, p *phase.Progress, s *node.Settings) error {
	if _, err := l.Complete(ctx, p); err != nil {
		return err //nolint:wrapcheck // it names the settings
	}
	release, err := l.renderer().Release(ctx, s.ReleaseImage)
	if err != nil {
		return final(err)
	}
	if err := p.Until(ctx, l.Interval, "the renders of "+s.ReleaseImage, func(ctx context.Context) error {
		return final(l.renderer().Render(ctx, release, func(name string) { fmt.Fprintln(l.Output, "render", name) }))
	}); err != nil {
		return err //nolint:wrapcheck // it names the render
	}
	list, err := rendered(l.assets())
	if err != nil {
		return fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	return files.Replace(l.Path(node.Rendered), list) //nolint:wrapcheck // it names the folder
}

// isRendered reports whether render has finished; the folder of a release is there as a whole or not at all.
func (l *live) isRendered(ctx context.Context) (bool, error) {
	s, err := l.Settings()
	switch {
	case err != nil:
		return false, err //nolint:wrapcheck // it names the file
	case ofRelease(s):
		return l.FileExists(otherManifests)(ctx)
	}
	return l.IsRendered(ctx) //nolint:wrapcheck // it names the file
}

// podConfigs are the configs of the renders by their file on the node.
var podConfigs = map[string]string{
	"kube-apiserver-bootstrap/config":              "kube-apiserver-config.yaml",
	"kube-controller-manager-bootstrap/config":     "kube-controller-manager-config.yaml",
	"kube-controller-manager-bootstrap/cpc-config": "cluster-policy-controller-config.yaml",
	"kube-scheduler-bootstrap/config":              "kube-scheduler-config.yaml",
}

// rendered returns the files of node.Rendered from the assets of the renders: the static pods with what they read, the
// kubeconfigs, and the manifests. The installed node gets the static pods, so etcd's has the name that its operator
// gives it.
func rendered(assets fs.FS) ([]files.File, error) {
	var list []files.File
	add := func(to string, content []byte) {
		list = append(list, files.File{Path: to, Mode: 0o600, Content: content})
	}
	err := each(assets, "etcd-bootstrap/etc-kubernetes", func(name string, content []byte) {
		add("files/etc/kubernetes/"+strings.Replace(name, "manifests/etcd-member-pod.yaml", "manifests/"+etcdPod, 1), content)
	})
	for from, to := range podConfigs {
		content, readErr := fs.ReadFile(assets, from)
		err = errors.Join(err, readErr)
		add("files/"+node.BootstrapConfigs+"/"+to, content)
	}
	err = errors.Join(err, each(assets, "tls", func(name string, content []byte) { add("files/"+node.BootstrapSecrets+"/"+name, content) }))
	for from, to := range map[string]string{
		"auth/kubeconfig-loopback": controlplane.Kubeconfig, "auth/kubeconfig-kubelet": controlplane.KubeletKubeconfig,
		"bootstrap-manifests/kube-apiserver-pod.yaml":          "files/" + node.ManifestDir + "/" + node.StaticPods[1],
		"bootstrap-manifests/kube-controller-manager-pod.yaml": "files/" + node.ManifestDir + "/" + node.StaticPods[2],
		"bootstrap-manifests/kube-scheduler-pod.yaml":          "files/" + node.ManifestDir + "/" + node.StaticPods[3],
	} {
		content, readErr := fs.ReadFile(assets, from)
		err = errors.Join(err, readErr)
		add(to, content)
	}
	err = errors.Join(err, each(assets, "manifests", func(name string, content []byte) {
		made, splitErr := split(name, content)
		if splitErr != nil {
			err = errors.Join(err, splitErr)
		}
		list = append(list, made...)
	}))
	return list, err
}

// each calls a function for each file of a folder and those below it.
func each(tree fs.FS, folder string, do func(name string, content []byte)) error {
	return fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error { //nolint:wrapcheck // it names the file
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err == nil {
			do(strings.TrimPrefix(name, folder+"/"), content)
		}
		return err //nolint:wrapcheck // it names the file
	})
}

// split returns a manifest's objects as files, each beside the bodies of the requests for its status.
func split(name string, content []byte) ([]files.File, error) {
	found, err := manifests.Objects(files.File{Path: "manifests/" + name, Content: content})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	var list []files.File
	for i, o := range found {
		group := o.GroupVersionKind().Group
		folder := path.Base(otherManifests)
		if group == "config.openshift.io" || o.GetKind() == "CustomResourceDefinition" || o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
			folder = path.Base(firstManifests)
		}
		base := fmt.Sprintf("%s-%d.yaml", strings.TrimSuffix(name, path.Ext(name)), i)
		write := func(to string, object map[string]any) error {
			text, err := sigsyaml.Marshal(object)
			list = append(list, files.File{Path: to, Mode: 0o600, Content: text})
			return err //nolint:wrapcheck // an object that was decoded
		}
		if err := write(folder+"/"+base, o.Object); err != nil {
			return nil, err
		}
		if !strings.HasSuffix(group, ".openshift.io") {
			continue // the status of a built-in kind is its controller's
		}
		for k, request := range (export.Manifest{Object: &o}).StatusRequests() {
			if err := write(fmt.Sprintf("%s/%s/%s-%d", folder, export.StatusDir, strings.TrimSuffix(base, ".yaml"), k)+".yaml", request.Object); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Static pods that only the live system runs, in ManifestDir, and the folders that their host paths need.
const (
	configServerPod = "machineconfigoperator-bootstrap-pod.yaml"
	controllerDir   = "etc/mcc/bootstrap"
	serverDir       = "etc/mcs"
)

// configServer returns the files of the machine-config operator's bootstrap pod, which makes the master config and
// serves it (U-INS-35).
func configServer(assets fs.FS) ([]files.File, error) {
	var list []files.File
	add := func(to string, content []byte) {
		list = append(list, files.File{Path: to, Mode: 0o600, Content: content})
	}
	err := errors.Join(
		each(assets, "mco-bootstrap/bootstrap/manifests", func(name string, content []byte) { add(controllerDir+"/"+name, content) }),
		each(assets, "manifests", func(name string, content []byte) { add(controllerDir+"/"+name, content) }),
	)
	for from, to := range map[string]string{
		"image-references": controllerDir + "/image-references", "auth/kubeconfig-kubelet": serverDir + "/kubeconfig",
		"tls/machine-config-server.crt": "etc/ssl/mcs/tls.crt", "tls/machine-config-server.key": "etc/ssl/mcs/tls.key",
		"mco-bootstrap/bootstrap/" + configServerPod: node.ManifestDir + "/" + configServerPod,
	} {
		content, readErr := fs.ReadFile(assets, from)
		err = errors.Join(err, readErr)
		add(to, content)
	}
	return list, err
}

// operatorPods returns the static pods of the live system that write to the cluster: of the cluster-version operator,
// and of others.
func operatorPods(assets fs.FS) ([]files.File, error) {
	var list []files.File
	err := each(assets, "bootstrap-manifests", func(name string, content []byte) {
		if !slices.Contains(node.StaticPods, name) {
			list = append(list, files.File{Path: node.ManifestDir + "/" + name, Mode: 0o600, Content: content})
		}
	})
	return list, err
}
