// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/feedback"
	render "github.com/solonode/sno/fleet/manifests"
)

var errRendered = errors.New("unexpected manifests")

// manifests collects those of one spoke.
type manifests struct {
	config  configuration.Configuration
	of      addonv1alpha1.ConfigReferent
	release bool
	objects []runtime.Object
	present map[string]bool
}

// Objects returns what a spoke gets with a configuration, by the name of that and by what the spoke has reported. In a
// release no controller runs.
func Objects(config configuration.Configuration, of addonv1alpha1.ConfigReferent, report feedback.Report, release bool) ([]runtime.Object, error) {
	m := manifests{config: config, of: of, release: release, present: map[string]bool{}}
	m.topology(report)
	if config.DryRun {
		return m.objects, nil
	}
	return m.objects, m.controllers()
}

// Hash returns ten hexadecimal digits that differ for programs that install other manifests by one configuration.
func Hash() (string, error) {
	workers := int64(0)
	objects, err := Objects(configuration.Configuration{Modules: feedback.Names()}, addonv1alpha1.ConfigReferent{},
		feedback.Report{Infrastructure: "-", Workers: &workers}, false)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(objects)
	return fmt.Sprintf("%x", sha256.Sum256(text))[:10], err
}

func (m *manifests) add(object *unstructured.Unstructured) {
	key := fmt.Sprint(object.GroupVersionKind(), " ", object.GetNamespace(), "/", object.GetName())
	if !m.present[key] { // modules have the Namespace in common
		m.present[key] = true
		m.objects = append(m.objects, object)
	}
}

// topology adds what is read of every spoke, and our claims once it has been read.
func (m *manifests) topology(report feedback.Report) {
	objects, _ := feedback.Topology()
	for _, o := range objects {
		m.add(o)
	}
	if report.Infrastructure != "" {
		m.add(newClaim(fleet.ClaimInfrastructure, report.Infrastructure))
	}
	if report.Workers != nil {
		m.add(newClaim(fleet.ClaimWorkers, strconv.FormatInt(*report.Workers, 10)))
	}
}

func newClaim(name, value string) *unstructured.Unstructured {
	return newObject(clusterv1alpha1.GroupVersion.String(), "ClusterClaim", "", name, map[string]any{"spec": map[string]any{"value": value}})
}

func newObject(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// controllers adds the controllers of the modules, the objects that have their conditions, and the Jobs of the release.
func (m *manifests) controllers() error {
	modules := map[string]feedback.Module{}
	for _, module := range feedback.Modules() {
		modules[module.Name] = module
	}
	for _, name := range m.config.Modules {
		objects, err := rendered(name, m.config.ImageOf(name))
		if err != nil {
			return fmt.Errorf("rendering module %s: %w", name, err)
		}
		var deployments int
		for _, object := range objects {
			if object.GetKind() == "Deployment" {
				deployments++
				job, err := m.finish(name, object)
				if err != nil {
					return fmt.Errorf("rendering module %s: %w", name, err)
				}
				m.add(job)
			}
			m.add(object)
		}
		if deployments != 1 {
			return fmt.Errorf("rendering module %s: %w: %d Deployments, want 1", name, errRendered, deployments)
		}
		m.add(modules[name].Manifest())
	}
	return nil
}

var parsed sync.Map // of [2]string, module and image, to []*unstructured.Unstructured

// rendered returns the manifests of a module, which the caller may change. They are the same for each cluster with the
// same image, and parsing them takes 15 ms, twice for each change of each of thousands of clusters.
func rendered(module, image string) ([]*unstructured.Unstructured, error) {
	key := [2]string{module, image}
	all, ok := parsed.Load(key)
	if !ok {
		text, err := render.Render(image, true, module)
		if err != nil {
			return nil, err
		}
		objects, err := parse(text)
		if err != nil {
			return nil, err
		}
		all, _ = parsed.LoadOrStore(key, objects)
	}
	var objects []*unstructured.Unstructured
	for _, object := range all.([]*unstructured.Unstructured) {
		objects = append(objects, object.DeepCopy())
	}
	return objects, nil
}

func parse(text string) (objects []*unstructured.Unstructured, err error) {
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			document, err = yaml.YAMLToJSON(document)
		}
		if err == nil {
			err = object.UnmarshalJSON(document)
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// finish gives the Deployment the options of the module, and no replicas in a release. It returns the Job that releases
// what the module owns, with the account of the Deployment and thus no other rights. The Job runs once the add-on is
// deleted.
func (m *manifests) finish(module string, deployment *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	template, _, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	containers, _, err := unstructured.NestedSlice(template, "spec", "containers")
	if err != nil {
		return nil, err
	}
	if len(containers) != 1 {
		return nil, fmt.Errorf("%w: the Deployment has %d containers, want 1", errRendered, len(containers))
	}
	container := containers[0].(map[string]any)
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return nil, err
	}
	args = append(args, m.config.Args(module)...)
	if err := unstructured.SetNestedStringSlice(container, args, "args"); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		return nil, err
	}
	annotations := deployment.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleet.ConfigurationAnnotation] = m.of.Namespace + "/" + m.of.Name
	deployment.SetAnnotations(annotations)
	if m.release { // a controller would take the fields again
		if err := unstructured.SetNestedField(deployment.Object, int64(0), "spec", "replicas"); err != nil {
			return nil, err
		}
	}
	selected, _, err := unstructured.NestedMap(deployment.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return nil, err
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("%w: the Deployment selects no pods by labels", errRendered)
	}
	return m.job(module, template, selected, deployment.GetNamespace())
}

func (m *manifests) job(module string, template, selected map[string]any, namespace string) (*unstructured.Unstructured, error) {
	template = runtime.DeepCopyJSON(template)
	containers, _, err := unstructured.NestedSlice(template, "spec", "containers")
	if err != nil {
		return nil, err
	}
	container := containers[0].(map[string]any)
	container["name"], container["image"] = "release", m.config.Tool
	container["args"] = []any{"release", module}
	for _, field := range []string{"ports", "livenessProbe", "readinessProbe", "startupProbe"} {
		delete(container, field)
	}
	spec := template["spec"].(map[string]any)
	spec["containers"], spec["restartPolicy"] = []any{container}, "Never"
	// The scheduler lets the Job wait until no controller runs any more in the cluster, which would take the fields again.
	spec["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": "kubernetes.io/os", "labelSelector": map[string]any{"matchLabels": selected}},
	}}}
	name := "sno-release-" + module
	template["metadata"] = map[string]any{
		"labels":      map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "sno"},
		"annotations": template["metadata"].(map[string]any)["annotations"],
	}
	job := newObject("batch/v1", "Job", namespace, name, map[string]any{"spec": map[string]any{
		"backoffLimit": int64(1000), // it waits for what keeps it from releasing; who forces the removal deletes the finalizer
		"template":     template,
	}})
	job.SetAnnotations(map[string]string{addonv1alpha1.AddonPreDeleteHookAnnotationKey: ""})
	return job, nil
}
