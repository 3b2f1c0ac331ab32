// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/phase"
)

// Source is a source of images.
type Source struct {
	For string
	// Hosts are its registries, with ports. One of them has to answer.
	Hosts []string
	// Required means that the installation fails without it.
	Required bool
}

// Sources returns the sources of the release image, which is required, of images with mirrors, and of the pull secret.
// release may be "".
func Sources(release string, mirrors []installconfig.ImageSource, pullSecret string) ([]Source, error) {
	var found []Source
	if release != "" {
		host, _, isPath := strings.Cut(release, "/")
		if !isPath || !strings.ContainsAny(host, ".:") && host != "localhost" {
			return nil, fmt.Errorf("release image %q: %w: write REGISTRY/REPOSITORY@DIGEST", release, phase.ErrInput)
		}
		s := Source{For: "release image " + release, Hosts: []string{registry(host)}, Required: true}
		longest := 0 // the longest match counts, as for container runtimes
		for _, m := range mirrors {
			if isOf(release, m.Source) && len(m.Source) > longest {
				s.Hosts, longest = hostsOf(m), len(m.Source)
			}
		}
		found = append(found, s)
	}
	for _, m := range mirrors {
		found = append(found, Source{For: "images of " + m.Source, Hosts: hostsOf(m)})
	}
	var secret struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if pullSecret != "" {
		if err := json.Unmarshal([]byte(pullSecret), &secret); err != nil {
			// The text of a JSON error may have a part of the secret.
			return nil, fmt.Errorf("pull secret: %w: not a JSON object with auths", phase.ErrInput)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Auths)) {
		host := registry(key)
		known := slices.ContainsFunc(found, func(s Source) bool { return slices.Contains(s.Hosts, host) })
		// This entry is for reports about the cluster, and not for a registry.
		if !known && host != "cloud.openshift.com" {
			found = append(found, Source{For: "pull secret, " + key, Hosts: []string{host}})
		}
	}
	return found, nil
}

func isOf(image, repository string) bool {
	rest, found := strings.CutPrefix(image, repository)
	return found && (rest == "" || strings.ContainsAny(rest[:1], "/:@"))
}

// hostsOf returns the registries in the order in which a container runtime tries them.
func hostsOf(m installconfig.ImageSource) []string {
	var hosts []string
	for _, mirror := range m.Mirrors {
		hosts = append(hosts, registry(mirror))
	}
	if m.SourcePolicy != configv1.NeverContactSource {
		hosts = append(hosts, registry(m.Source))
	}
	return hosts
}

// registry returns the host of a repository, or of a key in a pull secret, which may be a URL.
func registry(name string) string {
	_, after, isURL := strings.Cut(name, "://")
	if isURL {
		name = after
	}
	host, _, _ := strings.Cut(name, "/")
	if host == "docker.io" || host == "index.docker.io" {
		return "registry-1.docker.io"
	}
	return host
}
