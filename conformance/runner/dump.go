// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
)

// Collect writes events, warnings, objects and, for a cluster that the run created, logs into a folder. What may be
// secret is withheld.
func (r *Runner) Collect(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("create the folder for artifacts: %w", err)
	}
	state, err := r.read(ctx)
	if err != nil {
		return err
	}
	events, err := r.set.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("%w: list events: %w", catalogue.ErrRead, err)
	}
	objects, err := withoutSecrets(state)
	if err != nil {
		return fmt.Errorf("withhold secrets: %w", err)
	}
	var errs []error
	for name, what := range map[string]any{"objects.yaml": objects, "events.yaml": trimmed(events.Items), "warnings.yaml": r.warnings.all()} {
		text, err := yaml.Marshal(what)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), redacted(text), 0o600))
	}
	if r.target.Logs != nil {
		errs = append(errs, r.target.Logs(filepath.Join(folder, "logs")))
	}
	return errors.Join(errs...)
}

func trimmed(events []corev1.Event) []string {
	slices.SortFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%s %s %s/%s %s: %s", e.LastTimestamp.UTC().Format(time.RFC3339), e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return lines
}

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

// warnings collects the distinct warnings of the API server. They are written into artifacts, not printed.
type warnings struct{ texts sync.Map }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts.Store(text, true) }

func (w *warnings) all() []string {
	var all []string
	w.texts.Range(func(text, _ any) bool {
		all = append(all, fmt.Sprint(text))
		return true
	})
	slices.Sort(all)
	return all
}
