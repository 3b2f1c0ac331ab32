package auth

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// OverridePolicy says when the override is set on a single control-plane node.
type OverridePolicy string

const (
	// OverrideAuto sets it where the release needs it, as far as that is known. The empty policy is the same.
	OverrideAuto OverridePolicy = "auto"
	// OverrideAlways sets it whatever the release is.
	OverrideAlways OverridePolicy = "always"
	// OverrideNever sets it never, and lets go of it.
	OverrideNever OverridePolicy = "never"
)

// ErrOverridePolicy is returned for a policy that is none of the three.
var ErrOverridePolicy = errors.New("invalid override policy")

// ParseOverridePolicy reads a flag's value.
func ParseOverridePolicy(text string) (OverridePolicy, error) {
	switch policy := OverridePolicy(text); policy {
	case OverrideAuto, OverrideAlways, OverrideNever:
		return policy, nil
	}
	return "", fmt.Errorf("%w: %q; want %s, %s or %s", ErrOverridePolicy, text, OverrideAuto, OverrideAlways, OverrideNever)
}

// ReleaseNeed is whether a release's authentication operator needs the override on one control-plane node.
type ReleaseNeed int

const (
	// NeedUnknown means that nothing is known about the release.
	NeedUnknown ReleaseNeed = iota
	// NeedNone means that the operator goes by the topology, or does not count control-plane nodes at all.
	NeedNone
	// NeedOverride means that it waits for three control-plane nodes, whatever the topology is.
	NeedOverride
)

// The minor releases, of major 4, that are known to need the override, and the first that goes by the topology. The README says
// where that is from.
const (
	firstThatNeeds  = "4.6"
	firstByTopology = "4.8"
)

// NeedOfRelease tells it by the release's version, such as "4.7.13" or "4.7.0-0.okd-2021-03-07-090821":
//
//	4.6, 4.7        the operator waits for 3 API servers, and the override is how to make it go on with 1
//	4.8 and later   it goes by the topology (and the newest do not count: U-AUTH-5)
//	before 4.6      unknown, as is whatever cannot be read
//
// A release in development of 4.8 may have been built before the change. It counts as 4.8.
func NeedOfRelease(release string) ReleaseNeed {
	v, err := version.ParseGeneric(release)
	if err != nil {
		return NeedUnknown
	}
	// Without what follows the minor version, a pre-release of 4.8.0 is no earlier than 4.8.
	v = version.MajorMinor(v.Major(), v.Minor())
	switch {
	case v.AtLeast(version.MustParseGeneric(firstByTopology)):
		return NeedNone
	case v.AtLeast(version.MustParseGeneric(firstThatNeeds)):
		return NeedOverride
	}
	return NeedUnknown
}

// NeedOfCluster tells it for the releases whose operators may be running now: the one that is wanted, and while an update to it
// is under way also those before it, back to the last that was completed. One that needs the override is enough. nil, where
// there is no ClusterVersion, is unknown.
func NeedOfCluster(cv *configv1.ClusterVersion) ReleaseNeed {
	if cv == nil {
		return NeedUnknown
	}
	need := NeedOfRelease(cv.Status.Desired.Version)
	for _, entry := range cv.Status.History {
		if need == NeedOverride {
			return need
		}
		need = max(need, NeedOfRelease(entry.Version))
		if entry.State == configv1.CompletedUpdate {
			break
		}
	}
	return need
}
