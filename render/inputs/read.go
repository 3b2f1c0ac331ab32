// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configv1alpha1 "github.com/openshift/api/config/v1alpha1"
	configv1alpha2 "github.com/openshift/api/config/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

// Cluster is the content of a folder. After Read without an error every resource of config.openshift.io is set.
type Cluster struct {
	Infrastructure *configv1.Infrastructure
	Network        *configv1.Network
	APIServer      *configv1.APIServer
	Authentication *configv1.Authentication
	OAuth          *configv1.OAuth
	Image          *configv1.Image
	Scheduler      *configv1.Scheduler
	FeatureGate    *configv1.FeatureGate
	Proxy          *configv1.Proxy
	Ingress        *configv1.Ingress
	DNS            *configv1.DNS
	Node           *configv1.Node

	// Nodes are the core Nodes of all roles, sorted by name.
	Nodes []*corev1.Node
	// Others are all other objects in the order of files and documents.
	Others []*unstructured.Unstructured

	// Warnings are fields that are set and have no effect, or none before an operator runs.
	Warnings document.Faults

	// openShiftOnly are fields that are set and have an effect in profile openshift only.
	openShiftOnly document.Faults
}

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
	faults  document.Faults
	sources map[identity]*document.Document
	// kinds are the required kinds that were read, valid or not: they are not reported as missing.
	kinds      map[string]bool
	secrets    map[identity]*corev1.Secret
	configMaps map[identity]*corev1.ConfigMap
	now        time.Time
	renewal    bool
}

// Read reads all .yaml, .yml and .json files of a folder and its subfolders (R-REN-3). It returns all faults at once,
// as document.Faults. now decides which certificates are valid. Statuses of networks and proxy, which an operator would
// derive from the spec, are filled, because no operator runs before kube-apiserver.
func Read(folder fs.FS, now time.Time) (*Cluster, error) { return read(folder, now, false) }

// ReadForRenewal is Read for an earlier input. Expired certificates are no faults; unmanaged ones are warnings.
func ReadForRenewal(folder fs.FS, now time.Time) (*Cluster, error) { return read(folder, now, true) }

func read(folder fs.FS, now time.Time, again bool) (*Cluster, error) {
	r := &reader{
		cluster: &Cluster{}, now: now, renewal: again, sources: map[identity]*document.Document{}, kinds: map[string]bool{},
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
		documents, faults := document.Parse(name, content)
		r.faults = append(r.faults, faults...)
		for _, d := range documents {
			r.addObject(d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the input folder: %w", err)
	}
	if files == 0 {
		r.missing("", "the input folder has no manifests; files must end in .yaml, .yml or .json")
	}
	for _, kind := range required {
		if !r.kinds[kind] {
			r.missing(kind+" "+clusterName, "add it; without settings: "+minimal(kind))
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
		r.faults.Sort()
		return nil, r.faults
	}
	r.fillStatuses()
	r.cluster.Warnings.Sort()
	return r.cluster, nil
}

func minimal(kind string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {}}", configv1.GroupVersion, kind, clusterName)
}

func (r *reader) report(s *document.Document, errs ...*field.Error) {
	r.faults = append(r.faults, s.Faults(errs)...)
}

func (r *reader) missing(object, advice string) {
	r.faults = append(r.faults, document.Fault{Object: object, Problem: document.Whole(field.ErrorTypeRequired, advice)})
}

func (r *reader) warn(s *document.Document, at, format string, args ...any) {
	r.cluster.Warnings = append(r.cluster.Warnings, s.Faults(ignored(at, format, args...))...)
}

func ignored(at, format string, args ...any) field.ErrorList {
	return field.ErrorList{{Type: document.Ignored, Field: at, Detail: fmt.Sprintf(format, args...)}}
}

func (r *reader) configSource(kind string) *document.Document {
	return r.sources[identity{configv1.GroupName, kind, "", clusterName}]
}

func (r *reader) addObject(s *document.Document) {
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.JSON, &meta); err != nil {
		r.report(s, field.TypeInvalid(field.NewPath("metadata"), document.Omitted, err.Error()))
		return
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil || meta.Kind == "" || gv.Version == "" {
		r.report(s, document.Whole(field.ErrorTypeRequired, "apiVersion and kind; every document is a Kubernetes object"))
		return
	}
	id := identity{gv.Group, meta.Kind, meta.Namespace, meta.Name}
	s.Object = id.String()
	if meta.Name == "" {
		r.report(s, field.Required(field.NewPath("metadata", "name"), "generated names are not supported"))
		return
	}

	var typed runtime.Object
	switch {
	case gv.Group == configv1.GroupName:
		if typed, err = configScheme.New(gv.WithKind(meta.Kind)); err != nil || strings.HasSuffix(meta.Kind, "List") {
			r.report(s, field.Invalid(field.NewPath("kind"), meta.Kind, meta.APIVersion+" has no such kind; check both"))
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
	if typed != nil {
		r.report(s, s.Decode(typed)...)
	}
	if isRequired {
		if meta.Name != clusterName {
			r.report(s, field.Invalid(field.NewPath("metadata", "name"), meta.Name, "it must be "+clusterName))
			return
		}
		if meta.Namespace != "" {
			r.report(s, field.Forbidden(field.NewPath("metadata", "namespace"), "the resource has none"))
		}
		// The fields of Cluster have the names of the kinds.
		reflect.ValueOf(r.cluster).Elem().FieldByName(meta.Kind).Set(reflect.ValueOf(typed))
		return
	}
	r.keepObject(s, id, typed)
}

func (r *reader) unique(id identity, s *document.Document) bool {
	first, ok := r.sources[id]
	if !ok {
		r.sources[id] = s
		return true
	}
	var a, b any
	at, problem := "", "the same object is at %s; remove one of them"
	if json.Unmarshal(first.JSON, &a) != nil || json.Unmarshal(s.JSON, &b) != nil || !reflect.DeepEqual(a, b) {
		at, problem = difference("", a, b), "the same object is at %s, and differs; remove one of them"
	}
	r.report(s, &field.Error{Type: field.ErrorTypeDuplicate, Field: at, BadValue: document.Omitted, Detail: fmt.Sprintf(problem, first.Place(at))})
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
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(mapA[key], mapB[key]) {
			return difference(strings.TrimPrefix(at+"."+key, "."), mapA[key], mapB[key])
		}
	}
	return at
}

func (r *reader) keepObject(s *document.Document, id identity, typed runtime.Object) {
	if node, is := typed.(*corev1.Node); is {
		r.cluster.Nodes = append(r.cluster.Nodes, node)
		return
	}
	other := &unstructured.Unstructured{}
	if err := other.UnmarshalJSON(s.JSON); err != nil {
		r.report(s, document.Whole(field.ErrorTypeTypeInvalid, err.Error()))
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
	r.cluster.Others = append(r.cluster.Others, other)
}

func (r *reader) namespaced(s *document.Document, id identity) {
	if id.namespace == "" {
		r.report(s, field.Required(field.NewPath("metadata", "namespace"), "the kind has one"))
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
