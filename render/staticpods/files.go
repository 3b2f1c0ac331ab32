// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/solonode/sno/render/files"
)

// Folders on the host, relative to its root.
const (
	ManifestDir = "etc/kubernetes/manifests"
	ResourceDir = "etc/kubernetes/static-pod-resources"
)

const podKey = "pod.yaml"

// Errors of Files.
var (
	ErrMissing    = errors.New("not found")
	ErrInvalidPod = errors.New("not a pod")
)

// Files returns the files of a revision of the pod on a node, ordered by path, with the names, contents and modes of
// the stock installer pod. REVISION, NODE_NAME and NODE_ENVVAR_NAME are replaced. A missing object is ErrMissing, an
// invalid manifest ErrInvalidPod.
func Files(objects []runtime.Object, pod Pod, revision int32, node string) ([]files.File, error) {
	b := builder{
		configMaps: map[string]map[string]string{},
		secrets:    map[string]map[string][]byte{},
		namespace:  pod.Namespace,
		values: strings.NewReplacer(
			"REVISION", strconv.Itoa(int(revision)),
			"NODE_NAME", node,
			"NODE_ENVVAR_NAME", strings.NewReplacer("-", "_", ".", "_").Replace(node),
		),
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if object.Namespace == pod.Namespace {
				b.configMaps[object.Name] = object.Data
			}
		case *corev1.Secret:
			if object.Namespace == pod.Namespace {
				b.secrets[object.Name] = object.Data
			}
		}
	}
	suffix := fmt.Sprintf("-%d", revision)
	folder := path.Join(ResourceDir, pod.Name+suffix)
	b.addResources(folder, suffix, pod.ConfigMaps, pod.Secrets)
	if pod.CertDir != "" {
		b.addResources(path.Join(ResourceDir, pod.CertDir), "", pod.CertConfigMaps, pod.CertSecrets)
	}
	manifests, err := b.manifests(pod.Name, pod.Name+suffix)
	if err != nil {
		b.faults = append(b.faults, err)
	}
	for name, content := range manifests {
		b.add(path.Join(folder, name), 0o600, content)
		b.add(path.Join(ManifestDir, name), 0o600, content)
	}
	if len(b.faults) > 0 {
		return nil, errors.Join(b.faults...)
	}
	slices.SortFunc(b.files, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return b.files, nil
}

type builder struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
	namespace  string
	values     *strings.Replacer
	files      []files.File
	faults     []error
}

func (b *builder) add(name string, mode fs.FileMode, content []byte) {
	b.files = append(b.files, files.File{Path: name, Mode: mode, Content: content})
}

// addResources adds the files of ConfigMaps and Secrets, one folder for each.
func (b *builder) addResources(folder, suffix string, configMaps, secrets []Resource) {
	for _, r := range configMaps {
		data, exists := b.configMaps[r.Name+suffix]
		if !exists {
			b.missing("configmap", r, suffix)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			mode := fs.FileMode(0o600)
			if strings.HasSuffix(name, ".sh") {
				mode = 0o755
			}
			b.add(path.Join(folder, "configmaps", r.Name, name), mode, []byte(b.values.Replace(data[name])))
		}
	}
	for _, r := range secrets {
		data, exists := b.secrets[r.Name+suffix]
		if !exists {
			b.missing("secret", r, suffix)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			mode := fs.FileMode(0o600)
			if strings.HasSuffix(name, ".sh") {
				mode = 0o700
			}
			b.add(path.Join(folder, "secrets", r.Name, name), mode, []byte(b.values.Replace(string(data[name]))))
		}
	}
}

func (b *builder) missing(kind string, r Resource, suffix string) {
	if !r.Optional {
		b.faults = append(b.faults, fmt.Errorf("%s %s/%s: %w", kind, b.namespace, r.Name+suffix, ErrMissing))
	}
}

// manifests returns the pods of the pod's ConfigMap by file name: pod.yaml, and other keys that end in -pod.yaml.
func (b *builder) manifests(name, configMap string) (map[string][]byte, error) {
	data, exists := b.configMaps[configMap]
	if !exists {
		return nil, nil // reported with the ConfigMaps of the revision
	}
	if _, exists := data[podKey]; !exists {
		return nil, fmt.Errorf("configmap %s/%s: key %s: %w", b.namespace, configMap, podKey, ErrMissing)
	}
	manifests := map[string][]byte{}
	for key, raw := range data {
		file := key
		switch {
		case key == podKey:
			file = name + ".yaml"
		case !strings.HasSuffix(key, "-pod.yaml"):
			continue
		}
		decoded, _, err := decoder.Decode([]byte(b.values.Replace(raw)), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w: %w", b.namespace, configMap, key, ErrInvalidPod, err)
		}
		pod, is := decoded.(*corev1.Pod)
		if !is {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w but %T", b.namespace, configMap, key, ErrInvalidPod, decoded)
		}
		pod.UID = ""
		encoded, err := runtime.Encode(encoder, pod)
		if err != nil {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w", b.namespace, configMap, key, err)
		}
		manifests[file] = encoded
	}
	return manifests, nil
}

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err) // the types are compiled in
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

var (
	decoder = codecs.UniversalDeserializer()
	encoder = codecs.LegacyCodec(corev1.SchemeGroupVersion)
)
