// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// OverridePolicy selects the releases on which the override is set on a single control-plane node. Empty means
// OverrideAuto.
type OverridePolicy string

// The override policies.
const (
	OverrideAuto   OverridePolicy = "auto" // releases that are known to need it
	OverrideAlways OverridePolicy = "always"
	OverrideNever  OverridePolicy = "never"
)

// Validate returns an ErrInputs for an unknown policy.
func (p OverridePolicy) Validate() error {
	switch p {
	case "", OverrideAuto, OverrideAlways, OverrideNever:
		return nil
	}
	return fmt.Errorf("%w: override policy %q; want %s, %s or %s", ErrInputs, p, OverrideAuto, OverrideAlways, OverrideNever)
}

// releaseNeed is the need of a release's authentication operator for the override on one control-plane node.
type releaseNeed int

const (
	needUnknown releaseNeed = iota
	needNone
	needOverride
)

// needOfRelease returns the need of a version such as "4.7.13". Without the override 4.6 and 4.7 wait for three API
// servers; 4.8 and its pre-releases, and later versions, follow the topology or do not count (U-AUTH-5).
func needOfRelease(release string) releaseNeed {
	v, err := version.ParseGeneric(release)
	if err != nil {
		return needUnknown
	}
	v = version.MajorMinor(v.Major(), v.Minor())
	switch {
	case v.AtLeast(version.MajorMinor(4, 8)):
		return needNone
	case v.AtLeast(version.MajorMinor(4, 6)):
		return needOverride
	}
	return needUnknown
}

// needOfCluster returns the highest need of the releases whose operators may be running: the desired one, and those
// before it back to the last completed one.
func needOfCluster(cv *configv1.ClusterVersion) releaseNeed {
	if cv == nil {
		return needUnknown
	}
	need := needOfRelease(cv.Status.Desired.Version)
	for _, entry := range cv.Status.History {
		if need == needOverride {
			return need
		}
		need = max(need, needOfRelease(entry.Version))
		if entry.State == configv1.CompletedUpdate {
			break
		}
	}
	return need
}
