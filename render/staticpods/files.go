// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"errors"
	"fmt"
	"io/fs"
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

// Pod describes a static pod and its objects.
type Pod struct {
	// Name is the ConfigMap with the manifest (key pod.yaml), such as kube-apiserver-pod.
	Name      string
	Namespace string
	// ConfigMaps and Secrets are copied for each revision, the pod's ConfigMap first.
	ConfigMaps, Secrets []Resource
	// CertDir is the folder of the objects without a revision, such as kube-apiserver-certs.
	CertDir                     string
	CertConfigMaps, CertSecrets []Resource
}

// Resource is a ConfigMap or a Secret.
type Resource struct {
	Name     string
	Optional bool
}

// Files returns the files of a revision of the pod on a node, ordered by path, with the names, contents and modes of
// the stock installer pod. REVISION, NODE_NAME and NODE_ENVVAR_NAME are replaced. A missing object is ErrMissing, an
// invalid manifest ErrInvalidPod.
func Files(objects []runtime.Object, pod Pod, revision int32, node string) ([]files.File, error) {
	b := builder{
		data:      map[string]map[string][]byte{},
		namespace: pod.Namespace,
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
				files := map[string][]byte{}
				for name, text := range object.Data {
					files[name] = []byte(text)
				}
				b.data[configMap+" "+object.Name] = files
			}
		case *corev1.Secret:
			if object.Namespace == pod.Namespace {
				b.data[secret+" "+object.Name] = object.Data
			}
		}
	}
	suffix := fmt.Sprintf("-%d", revision)
	folder := path.Join(ResourceDir, pod.Name+suffix)
	b.addResources(folder, suffix, configMap, pod.ConfigMaps)
	b.addResources(folder, suffix, secret, pod.Secrets)
	if pod.CertDir != "" {
		b.addResources(path.Join(ResourceDir, pod.CertDir), "", configMap, pod.CertConfigMaps)
		b.addResources(path.Join(ResourceDir, pod.CertDir), "", secret, pod.CertSecrets)
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

// Kinds of objects with files.
const (
	configMap = "configmap"
	secret    = "secret"
)

type builder struct {
	// data has the files of an object by its kind and name.
	data      map[string]map[string][]byte
	namespace string
	values    *strings.Replacer
	files     []files.File
	faults    []error
}

func (b *builder) add(name string, mode fs.FileMode, content []byte) {
	b.files = append(b.files, files.File{Path: name, Mode: mode, Content: content})
}

// addResources adds the files of ConfigMaps or Secrets, one folder for each.
func (b *builder) addResources(folder, suffix, kind string, resources []Resource) {
	for _, r := range resources {
		data, exists := b.data[kind+" "+r.Name+suffix]
		if !exists && !r.Optional {
			b.faults = append(b.faults, fmt.Errorf("%s %s/%s: %w", kind, b.namespace, r.Name+suffix, ErrMissing))
		}
		for name, content := range data {
			mode := fs.FileMode(0o600)
			if strings.HasSuffix(name, ".sh") {
				mode = map[string]fs.FileMode{configMap: 0o755, secret: 0o700}[kind]
			}
			b.add(path.Join(folder, kind+"s", r.Name, name), mode, []byte(b.values.Replace(string(content))))
		}
	}
}

// manifests returns the pods of the pod's ConfigMap by file name: pod.yaml, and other keys that end in -pod.yaml.
func (b *builder) manifests(name, object string) (map[string][]byte, error) {
	data, exists := b.data[configMap+" "+object]
	if !exists {
		return nil, nil // reported with the ConfigMaps of the revision
	}
	if _, exists := data[podKey]; !exists {
		return nil, fmt.Errorf("configmap %s/%s: key %s: %w", b.namespace, object, podKey, ErrMissing)
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
		decoded, _, err := decoder.Decode([]byte(b.values.Replace(string(raw))), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w: %w", b.namespace, object, key, ErrInvalidPod, err)
		}
		pod, is := decoded.(*corev1.Pod)
		if !is {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w but %T", b.namespace, object, key, ErrInvalidPod, decoded)
		}
		pod.UID = ""
		encoded, err := runtime.Encode(encoder, pod)
		if err != nil {
			return nil, fmt.Errorf("configmap %s/%s: key %s: %w", b.namespace, object, key, err)
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
