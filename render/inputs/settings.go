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
)

// Profile says whose images and commands the static pods have. Files, objects and labels are the same in each.
type Profile string

const (
	// OpenShift has the images of a release payload, the hyperkube commands and the sidecars of today's operators.
	OpenShift Profile = "openshift"
	// Kubernetes has the plain images and commands of Kubernetes.
	Kubernetes Profile = "kubernetes"
)

// Has reports whether the profile has a static resource, by the name of its file: what is of one profile only begins with that, as in
// openshift-serviceaccount.yaml. Objects for sidecars and installer pods grant rights that nobody needs in profile kubernetes.
func (p Profile) Includes(file string) bool {
	for _, other := range []Profile{OpenShift, Kubernetes} {
		if other != p && strings.HasPrefix(file, string(other)+"-") {
			return false
		}
	}
	return true
}

// DefaultValidity is how long certificates last that nobody renews.
const DefaultValidity = 10 * 365 * 24 * time.Hour

// MinValidity is the shortest time that certificates may last: a node has to come up, and to renew them, in a part of it.
const MinValidity = 5 * time.Minute

// DefaultEtcdImage is etcd's image in profile kubernetes.
const DefaultEtcdImage = "registry.k8s.io/etcd:3.6.8-0"

// unreleased is the version that operators have for feature gates of a release that they do not know.
const unreleased = "0.0.1-snapshot"

// OpenShiftImages are the names in a release payload of the images that profile openshift needs.
var OpenShiftImages = []string{
	"cluster-etcd-operator", "cluster-kube-apiserver-operator", "cluster-kube-controller-manager-operator",
	"cluster-kube-scheduler-operator", "cluster-policy-controller", "etcd", "hyperkube", "tools",
}

// KubernetesImages are the names of the images that profile kubernetes needs.
var KubernetesImages = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Options are what a caller chooses.
type Options struct {
	Profile Profile
	// Images are pull specifications by name. Profile openshift has no defaults: they come from a release payload
	// (ReadImageReferences). Profile kubernetes has the images of registry.k8s.io.
	Images map[string]string
	// Version is Kubernetes' version, with or without a v. A payload has it.
	Version string
	// Release is the version of the payload, for which FeatureGate says what is on. Empty in profile kubernetes.
	Release string
	// Validity is how long certificates last that nobody renews; zero means DefaultValidity.
	Validity time.Duration
}

// Settings are what every component gets: the checked input and what the caller chose.
type Settings struct {
	Cluster *Cluster
	Profile Profile
	// Images are pull specifications by the names that a release payload has for them; in profile kubernetes the names are
	// kube-apiserver, kube-controller-manager, kube-scheduler and etcd.
	Images map[string]string
	// Version is Kubernetes' version without a v, such as 1.35.2.
	Version string
	// Nodes are the control-plane nodes, sorted by name.
	Nodes []Node
	// Validity is how long certificates last that nobody renews, and their signers.
	Validity time.Duration
	// Warnings are those of the Cluster, and of fields that have no effect in this profile.
	Warnings Faults
}

// Node is a control-plane node.
type Node struct {
	Name string
	// Addresses are the internal addresses, in the order of the Node's status. There is at least one.
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

// Settings returns what the components are given. All that is wrong with the options is reported at once, as Faults.
//
// FeatureGate's status is filled where the input leaves it empty: with the gates of its set, as the config operator does.
func (c *Cluster) Settings(o Options) (*Settings, error) {
	s := &Settings{
		Cluster: c, Profile: o.Profile, Images: map[string]string{}, Version: strings.TrimPrefix(o.Version, "v"),
		Validity: o.Validity, Warnings: slices.Clone(c.Warnings),
	}
	var faults Faults
	add := func(kind error, object, problem, advice string) {
		faults = append(faults, Fault{Object: object, Problem: problem, Advice: advice, Kind: kind})
	}
	if s.Validity == 0 {
		s.Validity = DefaultValidity
	}
	if s.Validity < MinValidity {
		add(ErrInvalid, "validity", fmt.Sprintf("%s is too short", s.Validity), fmt.Sprintf("at least %s", MinValidity))
	}
	if !kubernetesVersion.MatchString(s.Version) {
		add(ErrInvalid, "version", fmt.Sprintf("%q is no version of Kubernetes", o.Version), "such as 1.35.2")
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
		s.Warnings = append(s.Warnings, c.openShiftOnly...).sorted()
	default:
		add(ErrInvalid, "profile", fmt.Sprintf("unknown profile %q", o.Profile), fmt.Sprintf("%s or %s", OpenShift, Kubernetes))
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
		add(ErrMissing, "images", "no image for "+strings.Join(missing, ", "), "give the image references of a release payload")
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
	if len(faults) > 0 {
		return nil, faults.sorted()
	}

	cluster := *c
	cluster.FeatureGate = c.FeatureGate.DeepCopy()
	if err := fillFeatureGates(cluster.FeatureGate, o.Release); err != nil {
		return nil, Faults{{Object: "FeatureGate " + clusterName, Problem: err.Error(), Kind: ErrInvalid}}
	}
	s.Cluster = &cluster
	return s, nil
}

// fillFeatureGates gives a FeatureGate without gates those of its set.
func fillFeatureGates(gate *configv1.FeatureGate, release string) error {
	if len(gate.Status.FeatureGates) > 0 {
		return nil
	}
	version := release
	if version == "" {
		version = unreleased
	}
	// The API knows gates by the major version of OpenShift.
	number, _, _ := strings.Cut(release, ".")
	if release == "" {
		number = "4"
	}
	major, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return fmt.Errorf("release %q is no version: %w", release, err)
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
