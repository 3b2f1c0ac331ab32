// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/solonode/sno/conformance/catalogue"
)

// withheld replaces what may be secret in artifacts, which people attach to bug reports.
const withheld = "(withheld)"

// publicAnnotations matches annotations whose values are never secret.
var publicAnnotations = regexp.MustCompile(`^(deployment\.kubernetes\.io/revision|kubectl\.kubernetes\.io/restartedAt|([a-z]+\.)?sno\.solonode\.github\.io/.*|` +
	`machineconfiguration\.openshift\.io/(desiredConfig|currentConfig|state|desiredDrain|lastAppliedDrain|controlPlaneTopology)|release\.openshift\.io/.*)$`)

// withoutSecrets returns the state as JSON without what may contain a secret on some cluster: variables, commands, most
// annotations, and the configuration of operators.
func withoutSecrets(s *catalogue.State) (any, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var objects any
	err = json.Unmarshal(text, &objects)
	withhold(objects)
	return objects, err
}

// withhold works by the names of fields, so that it covers every kind, templates included.
func withhold(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			withhold(item)
		}
	case map[string]any:
		for field, value := range node {
			switch field {
			case "annotations":
				withholdValues(value, publicAnnotations.MatchString)
			case "data": // of the stock approver's ConfigMap
				withholdValues(value, func(key string) bool { return key == catalogue.ApproverFile })
			case "terminated":
				withholdValues(value, func(key string) bool { return key != "message" })
			case "ephemeralContainers", "volumes", "observedConfig", "unsupportedConfigOverrides", "extension", "binaryData":
				delete(node, field)
			case "containers", "initContainers":
				keepFields(value, "name", "image", "ports", "resources", "restartPolicy")
			default:
				withhold(value)
			}
		}
	}
}

func withholdValues(node any, public func(key string) bool) {
	values, _ := node.(map[string]any)
	for key := range values {
		if !public(key) {
			values[key] = withheld
		}
	}
}

func keepFields(node any, fields ...string) {
	items, _ := node.([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		maps.DeleteFunc(object, func(field string, _ any) bool { return !slices.Contains(fields, field) })
	}
}

// tokens matches secrets in any text, such as the message of an event: private keys, signed and opaque tokens of an API
// server, credentials of a registry.
var tokens = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|sha256~[A-Za-z0-9_-]{20,}|` +
	`(?i:(?:bearer|basic) +[A-Za-z0-9+/=._~-]{8,})|\\*"(?i:auth|password|token)\\*" *: *\\*"[^"\\]*`)

func redacted(text []byte) []byte { return tokens.ReplaceAll(text, []byte(withheld)) }
