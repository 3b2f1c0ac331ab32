// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kjson "sigs.k8s.io/json"

	configv1 "github.com/openshift/api/config/v1"
	configv1alpha1 "github.com/openshift/api/config/v1alpha1"
	configv1alpha2 "github.com/openshift/api/config/v1alpha2"
)

// required are the resources of config.openshift.io that must be in the input, all named cluster. There are no
// defaults: on a cluster the installer or the config operator creates each of them.
var required = []string{
	"Infrastructure", "Network", "APIServer", "Authentication", "OAuth", "Image", "Scheduler", "FeatureGate", "Proxy", "Ingress", "DNS", "Node",
}

const clusterName = "cluster"

var configScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(configv1.Install(scheme))
	utilruntime.Must(configv1alpha1.Install(scheme))
	utilruntime.Must(configv1alpha2.Install(scheme))
	return scheme
}()

type identity struct{ group, kind, namespace, name string }

func (i identity) String() string {
	if i.namespace != "" {
		return i.kind + " " + i.namespace + "/" + i.name
	}
	return i.kind + " " + i.name
}

type reader struct {
	cluster *Cluster
	faults  Faults
	sources map[identity]*source
	// kinds are the required kinds that were read, valid or not: they are not reported as missing.
	kinds      map[string]bool
	secrets    map[identity]*corev1.Secret
	configMaps map[identity]*corev1.ConfigMap
	now        time.Time
	renewal    bool
}

// Read reads all .yaml, .yml and .json files of a folder and its subfolders (R-REN-3). It returns all faults at once,
// as Faults. now decides which certificates are valid. Statuses of networks and proxy, which an operator would derive
// from the spec, are filled, because no operator runs before kube-apiserver.
func Read(folder fs.FS, now time.Time) (*Cluster, error) { return read(folder, now, false) }

// ReadForRenewal is Read for an earlier input. Expired certificates are no faults; unmanaged ones are warnings.
func ReadForRenewal(folder fs.FS, now time.Time) (*Cluster, error) { return read(folder, now, true) }

func read(folder fs.FS, now time.Time, again bool) (*Cluster, error) {
	r := &reader{
		cluster: &Cluster{}, now: now, renewal: again, sources: map[identity]*source{}, kinds: map[string]bool{},
		secrets: map[identity]*corev1.Secret{}, configMaps: map[identity]*corev1.ConfigMap{},
	}
	files := 0
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		files++
		sources, faults := parse(name, content)
		r.faults = append(r.faults, faults...)
		for _, source := range sources {
			r.addObject(source)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the input folder: %w", err)
	}
	if files == 0 {
		r.faults = append(r.faults, Fault{Problem: "the input folder has no manifests", Kind: ErrMissing,
			Advice: "files must end in .yaml, .yml or .json"})
	}
	for _, kind := range required {
		if !r.kinds[kind] {
			r.faults = append(r.faults, Fault{
				Object: kind + " " + clusterName, Problem: "missing", Kind: ErrMissing,
				Advice: "add it; without settings: " + minimal(kind),
			})
		}
	}
	slices.SortFunc(r.cluster.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })

	r.checkFields()
	r.checkNodes()
	r.checkInfrastructure()
	r.checkNetworks()
	r.checkAuthentication()
	r.checkReferences()
	r.checkRegistry()
	r.checkCertificates()
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	r.fillStatuses()
	r.cluster.Warnings = r.cluster.Warnings.sorted()
	return r.cluster, nil
}

func minimal(kind string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {}}", configv1.GroupVersion, kind, clusterName)
}

func (s *source) fault(kind error, field, problem, advice string) Fault {
	return Fault{File: s.file, Line: s.line(field), Object: s.object, Field: field, Problem: problem, Advice: advice, Kind: kind}
}

func (r *reader) addFault(s *source, kind error, field, problem, advice string) {
	r.faults = append(r.faults, s.fault(kind, field, problem, advice))
}

func (r *reader) configSource(kind string) *source {
	return r.sources[identity{configv1.GroupName, kind, "", clusterName}]
}

func (r *reader) addObject(s *source) {
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.json, &meta); err != nil {
		r.addFault(s, ErrSyntax, "metadata", err.Error(), "")
		return
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil || meta.Kind == "" || gv.Version == "" {
		r.addFault(s, ErrSyntax, "", "no apiVersion or kind", "every document is a Kubernetes object")
		return
	}
	id := identity{gv.Group, meta.Kind, meta.Namespace, meta.Name}
	s.object = id.String()
	if meta.Name == "" {
		r.addFault(s, ErrMissing, "metadata.name", "no name", "generated names are not supported")
		return
	}

	var typed runtime.Object
	switch {
	case gv.Group == configv1.GroupName:
		if typed, err = configScheme.New(gv.WithKind(meta.Kind)); err != nil || strings.HasSuffix(meta.Kind, "List") {
			r.addFault(s, ErrUnknownKind, "kind", fmt.Sprintf("%s has no kind %s", meta.APIVersion, meta.Kind), "check apiVersion and kind")
			return
		}
	case meta.APIVersion == "v1" && meta.Kind == "Node":
		typed = &corev1.Node{}
	case meta.APIVersion == "v1" && meta.Kind == "Secret":
		typed = &corev1.Secret{}
	case meta.APIVersion == "v1" && meta.Kind == "ConfigMap":
		typed = &corev1.ConfigMap{}
	}
	isRequired := gv == configv1.GroupVersion && slices.Contains(required, meta.Kind)
	if isRequired {
		r.kinds[meta.Kind] = true
	}
	if !r.unique(id, s) {
		return
	}
	if typed != nil && !r.decode(s, typed) {
		return
	}
	if isRequired {
		if meta.Name != clusterName {
			r.addFault(s, ErrInvalid, "metadata.name", fmt.Sprintf("name is %q", meta.Name), "it must be "+clusterName)
			return
		}
		if meta.Namespace != "" {
			r.addFault(s, ErrInvalid, "metadata.namespace", "a namespace", "the resource has none")
		}
	}
	r.keepObject(s, id, typed)
}

func (r *reader) unique(id identity, s *source) bool {
	first, ok := r.sources[id]
	if !ok {
		r.sources[id] = s
		return true
	}
	where := fmt.Sprintf("%s:%d", first.file, first.line(""))
	var a, b any
	if json.Unmarshal(first.json, &a) == nil && json.Unmarshal(s.json, &b) == nil && reflect.DeepEqual(a, b) {
		r.addFault(s, ErrDuplicate, "", "duplicate of "+where, "remove one of them")
		return false
	}
	field := difference("", a, b)
	r.addFault(s, ErrConflict, field, fmt.Sprintf("%s: the other is at %s:%d", ErrConflict, first.file, first.line(field)),
		"remove one of them")
	return false
}

func difference(at string, a, b any) string {
	mapA, okA := a.(map[string]any)
	mapB, okB := b.(map[string]any)
	if !okA || !okB {
		return at
	}
	keys := map[string]bool{}
	for key := range mapA {
		keys[key] = true
	}
	for key := range mapB {
		keys[key] = true
	}
	for _, key := range sortedKeys(keys) {
		if !reflect.DeepEqual(mapA[key], mapB[key]) {
			return difference(strings.TrimPrefix(at+"."+key, "."), mapA[key], mapB[key])
		}
	}
	return at
}

// decode fills a typed object and reports whether it can be used. Unknown fields are faults, but the rest is checked.
func (r *reader) decode(s *source, into runtime.Object) bool {
	strict, err := kjson.UnmarshalStrict(s.json, into)
	if err != nil {
		field := ""
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			field = wrongType.Field
		}
		r.addFault(s, ErrInvalid, field, err.Error(), "")
		return false
	}
	for _, err := range strict {
		field := ""
		var withPath interface{ FieldPath() string }
		if errors.As(err, &withPath) {
			field = withPath.FieldPath()
		}
		r.addFault(s, ErrUnknownField, field, ErrUnknownField.Error(), "check its spelling and its place")
	}
	return true
}

func (r *reader) keepObject(s *source, id identity, typed runtime.Object) {
	c := r.cluster
	switch object := typed.(type) {
	case *configv1.Infrastructure:
		c.Infrastructure = object
	case *configv1.Network:
		c.Network = object
	case *configv1.APIServer:
		c.APIServer = object
	case *configv1.Authentication:
		c.Authentication = object
	case *configv1.OAuth:
		c.OAuth = object
	case *configv1.Image:
		c.Image = object
	case *configv1.Scheduler:
		c.Scheduler = object
	case *configv1.FeatureGate:
		c.FeatureGate = object
	case *configv1.Proxy:
		c.Proxy = object
	case *configv1.Ingress:
		c.Ingress = object
	case *configv1.DNS:
		c.DNS = object
	case *configv1.Node:
		c.Node = object
	case *corev1.Node:
		c.Nodes = append(c.Nodes, object)
	default:
		other := &unstructured.Unstructured{}
		if err := other.UnmarshalJSON(s.json); err != nil {
			r.addFault(s, ErrSyntax, "", err.Error(), "")
			return
		}
		switch object := typed.(type) {
		case *corev1.Secret:
			r.namespaced(s, id)
			mergeStringData(object, other)
			r.secrets[id] = object
		case *corev1.ConfigMap:
			r.namespaced(s, id)
			r.configMaps[id] = object
		}
		c.Others = append(c.Others, other)
	}
}

func (r *reader) namespaced(s *source, id identity) {
	if id.namespace == "" {
		r.addFault(s, ErrMissing, "metadata.namespace", "no namespace", "add one")
	}
}

// mergeStringData merges stringData into data, as the API server does.
func mergeStringData(secret *corev1.Secret, other *unstructured.Unstructured) {
	if len(secret.StringData) == 0 {
		return
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	content, err := json.Marshal(secret.Data)
	utilruntime.Must(err) // a map of bytes can always be encoded
	data := map[string]any{}
	utilruntime.Must(json.Unmarshal(content, &data))
	other.Object["data"] = data
	delete(other.Object, "stringData")
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
