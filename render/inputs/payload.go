// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// ErrNoImageReferences is returned for a file that is not the image-references of a release payload.
var ErrNoImageReferences = errors.New("no image references")

// Payload is the part of a release payload that a render needs.
type Payload struct {
	// Release is the version of OpenShift.
	Release string
	// Version is the version of Kubernetes, or empty.
	Version string
	// Images are pull specifications by name.
	Images map[string]string
}

const annotationVersions = "io.openshift.build.versions"

// ReadImageReferences reads the file image-references of a release payload, an ImageStream as JSON or YAML.
func ReadImageReferences(r io.Reader) (*Payload, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read image references: %w", err)
	}
	var stream struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Tags []struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
				From        *struct {
					Kind string `json:"kind"`
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &stream); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoImageReferences, err)
	}
	if stream.Kind != "ImageStream" || len(stream.Spec.Tags) == 0 {
		return nil, fmt.Errorf("%w: kind %q with %d tags, want an ImageStream", ErrNoImageReferences, stream.Kind, len(stream.Spec.Tags))
	}
	payload := &Payload{Release: stream.Metadata.Name, Images: map[string]string{}}
	for i, tag := range stream.Spec.Tags {
		if tag.Name == "" || tag.From == nil || tag.From.Kind != "DockerImage" || tag.From.Name == "" {
			return nil, fmt.Errorf("%w: spec.tags[%d] %q is not from a DockerImage", ErrNoImageReferences, i, tag.Name)
		}
		if other, ok := payload.Images[tag.Name]; ok && other != tag.From.Name {
			return nil, fmt.Errorf("%w: spec.tags[%d]: %s is both %s and %s", ErrNoImageReferences, i, tag.Name, other, tag.From.Name)
		}
		payload.Images[tag.Name] = tag.From.Name
		for version := range strings.SplitSeq(tag.Annotations[annotationVersions], ",") {
			if number, ok := strings.CutPrefix(version, "kubernetes="); ok && tag.Name == "hyperkube" {
				payload.Version = number
			}
		}
	}
	return payload, nil
}
