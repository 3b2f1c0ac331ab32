// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

// Profile selects the images and commands of the static pods. Files, objects and labels are the same in both.
type Profile string

const (
	// OpenShift uses the images of a release payload, hyperkube, and the operators' sidecars.
	OpenShift Profile = "openshift"
	// Kubernetes uses the images and commands of Kubernetes.
	Kubernetes Profile = "kubernetes"
)

// Includes reports whether the profile has a static resource, whose file name may begin with a profile.
func (p Profile) Includes(file string) bool {
	for _, other := range []Profile{OpenShift, Kubernetes} {
		if other != p && strings.HasPrefix(file, string(other)+"-") {
			return false
		}
	}
	return true
}

// DefaultValidity is the validity of certificates that are not rotated.
const DefaultValidity = 10 * 365 * 24 * time.Hour

// MinValidity is the shortest validity: the node must start and renew its certificates in a part of it.
const MinValidity = 5 * time.Minute

// DefaultEtcdImage is etcd's image in profile kubernetes, as kubeadm of the set of versions names it.
const DefaultEtcdImage = "registry.k8s.io/etcd:3.6.6-0"

// unreleased is the version that operators use for feature gates of an unknown release.
const unreleased = "0.0.1-snapshot"

// OpenShiftImages are the images of a release payload that profile openshift needs.
var OpenShiftImages = []string{
	"cluster-etcd-operator", "cluster-kube-apiserver-operator", "cluster-kube-controller-manager-operator",
	"cluster-kube-scheduler-operator", "cluster-policy-controller", "etcd", "hyperkube", "tools",
}

// KubernetesImages are the images that profile kubernetes needs.
var KubernetesImages = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Options are the caller's choices.
type Options struct {
	Profile Profile
	// Images are pull specifications by name. Profile kubernetes has defaults, profile openshift has none.
	Images map[string]string
	// Version is that of Kubernetes, with or without a v.
	Version string
	// Release is the version of the payload, which selects the feature gates; empty in profile kubernetes.
	Release string
	// Validity is the validity of certificates; zero means DefaultValidity.
	Validity time.Duration
}

// Settings are the checked input and options.
type Settings struct {
	Cluster *Cluster
	Profile Profile
	// Images are pull specifications by name in the payload; in profile kubernetes by component name.
	Images map[string]string
	// Version is that of Kubernetes without a v, such as 1.35.2.
	Version string
	// Nodes are the control-plane nodes, sorted by name.
	Nodes []Node
	// Validity is the validity of certificates and signers.
	Validity time.Duration
	// Warnings are those of the Cluster and of fields without effect in this profile.
	Warnings document.Faults
}

// Node is a control-plane node.
type Node struct {
	Name string
	// Addresses are the internal addresses in the order of the Node's status, at least one.
	Addresses []netip.Addr
}

// NodeNames returns the names of the control-plane nodes, sorted.
func (s *Settings) NodeNames() []string {
	names := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		names[i] = s.Nodes[i].Name
	}
	return names
}

var kubernetesVersion = regexp.MustCompile(`^1\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Settings returns the settings of the components, or all faults of the options at once.
//
// It fills an empty status of FeatureGate with the gates of the feature set, as the config operator does.
func (c *Cluster) Settings(o Options) (*Settings, error) {
	s := &Settings{
		Cluster: c, Profile: o.Profile, Images: map[string]string{}, Version: strings.TrimPrefix(o.Version, "v"),
		Validity: o.Validity, Warnings: slices.Clone(c.Warnings),
	}
	var errs field.ErrorList
	if s.Validity == 0 {
		s.Validity = DefaultValidity
	}
	if s.Validity < MinValidity {
		errs = append(errs, field.Invalid(field.NewPath("validity"), s.Validity.String(), fmt.Sprintf("it is too short; at least %s", MinValidity)))
	}
	if !kubernetesVersion.MatchString(s.Version) {
		errs = append(errs, field.Invalid(field.NewPath("version"), o.Version, "write a version of Kubernetes, such as 1.35.2"))
	}

	var wanted []string
	switch o.Profile {
	case OpenShift:
		wanted = OpenShiftImages
	case Kubernetes:
		wanted = KubernetesImages
		for _, name := range wanted {
			s.Images[name] = fmt.Sprintf("registry.k8s.io/%s:v%s", name, s.Version)
		}
		s.Images["etcd"] = DefaultEtcdImage
		s.Warnings = append(s.Warnings, c.openShiftOnly...)
		s.Warnings.Sort()
	default:
		errs = append(errs, field.NotSupported(field.NewPath("profile"), o.Profile, []Profile{OpenShift, Kubernetes}))
	}
	for name, image := range o.Images {
		if image != "" {
			s.Images[name] = image
		}
	}
	var missing []string
	for _, name := range wanted {
		if s.Images[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		errs = append(errs, field.Required(field.NewPath("images"), "there is none for "+strings.Join(missing, ", ")+"; give the image references of a release payload"))
	}

	for _, node := range c.controlPlane() {
		var internal []netip.Addr
		for _, address := range addressesOf(node) {
			if address.internal {
				internal = append(internal, address.ip)
			}
		}
		s.Nodes = append(s.Nodes, Node{Name: node.Name, Addresses: internal})
	}

	cluster := *c
	cluster.FeatureGate = c.FeatureGate.DeepCopy()
	if err := fillFeatureGates(cluster.FeatureGate, o.Release); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("release"), o.Release, err.Error()))
	}
	if len(errs) > 0 {
		var faults document.Faults
		for _, err := range errs {
			faults = append(faults, document.Fault{Problem: err})
		}
		return nil, faults
	}
	s.Cluster = &cluster
	return s, nil
}

func fillFeatureGates(gate *configv1.FeatureGate, release string) error {
	if len(gate.Status.FeatureGates) > 0 {
		return nil
	}
	version := release
	if version == "" {
		version = unreleased
	}
	// The API has gates by the major version of OpenShift.
	number, _, _ := strings.Cut(release, ".")
	if release == "" {
		number = "4"
	}
	major, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return fmt.Errorf("not a version of OpenShift: %w", err)
	}
	of := features.FeatureSets(major, features.SelfManaged, gate.Spec.FeatureSet)
	details := configv1.FeatureGateDetails{Version: version}
	for _, feature := range of.Enabled {
		details.Enabled = append(details.Enabled, feature.FeatureGateAttributes)
	}
	for _, feature := range of.Disabled {
		details.Disabled = append(details.Disabled, feature.FeatureGateAttributes)
	}
	byName := func(a, b configv1.FeatureGateAttributes) int { return strings.Compare(string(a.Name), string(b.Name)) }
	slices.SortFunc(details.Enabled, byName)
	slices.SortFunc(details.Disabled, byName)
	gate.Status.FeatureGates = []configv1.FeatureGateDetails{details}
	return nil
}
