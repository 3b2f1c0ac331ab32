// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

var (
	// ErrPayload is in the error of a release payload that lacks what an installation needs.
	ErrPayload = errors.New("unusable release payload")
	// ErrTag is in the error of an image that the payload does not have.
	ErrTag = errors.New("the release payload has no image of this name")
)

// Release is a release payload.
type Release struct {
	Image   string // by digest
	Version string
	// KubernetesVersion is without "v", which a render refuses.
	KubernetesVersion string
	images            map[string]string // by tag
}

// Parse reads /release-manifests/release-metadata and image-references of a payload.
func Parse(image string, metadata, references []byte) (*Release, error) {
	r := &Release{Image: image, images: map[string]string{}}
	fail := func(format string, args ...any) (*Release, error) {
		return nil, fmt.Errorf("release image %s: %w: %w", image, ErrPayload, fmt.Errorf(format, args...))
	}
	var release struct{ Kind, Version string }
	if err := json.Unmarshal(metadata, &release); err != nil || release.Version == "" {
		return fail("release-metadata has no version: %w", err)
	}
	r.Version = release.Version
	var stream struct {
		Spec struct {
			Tags []struct {
				Name        string
				Annotations map[string]string
				From        struct{ Name string }
			}
		}
	}
	if err := json.Unmarshal(references, &stream); err != nil {
		return fail("image-references: %w", err)
	}
	for _, tag := range stream.Spec.Tags {
		r.images[tag.Name] = tag.From.Name
		if tag.Name != "hyperkube" {
			continue
		}
		for pair := range strings.SplitSeq(tag.Annotations["io.openshift.build.versions"], ",") {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); name == "kubernetes" {
				r.KubernetesVersion = strings.TrimPrefix(value, "v")
			}
		}
	}
	if _, err := version.ParseSemantic(r.KubernetesVersion); err != nil {
		return fail("tag hyperkube has no version of Kubernetes in io.openshift.build.versions: %w", err)
	}
	return r, nil
}

// ImageOf returns the image of a tag.
func (r *Release) ImageOf(tag string) (string, error) {
	if image := r.images[tag]; image != "" {
		return image, nil
	}
	return "", fmt.Errorf("release image %s: %w: %s", r.Image, ErrTag, tag)
}
