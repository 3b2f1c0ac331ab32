// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/document"
)

// Purpose is the command that reads the config. Each has checks of its own (R-BIP-27).
type Purpose string

// Purposes.
const (
	SingleNode Purpose = "single-node-ignition-config"
	AllInOne   Purpose = "aio-ignition"
)

// Options of Read.
type Options struct {
	Purpose            Purpose
	InstallerArguments string
	// Release is set if the render commands of a release payload read the config too.
	Release bool
	// OVNKubernetes is the user's manifest of the cluster network operator; nil means its defaults.
	OVNKubernetes *operatorv1.OVNKubernetesConfig
}

// DiskVariable is the environment variable with the disk and other arguments of coreos-installer, older than the field
// bootstrapInPlace.installationDisk (U-INS-2).
const DiskVariable = "OPENSHIFT_INSTALL_EXPERIMENTAL_BOOTSTRAP_IN_PLACE_COREOS_INSTALLER_ARGS"

// Read reads an install-config. The error is document.Faults with all that is wrong. Warnings are about fields that are
// set and have no effect.
func Read(file string, text []byte, o Options) (*Config, []string, error) {
	d, faults := document.One(file, text)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	r := &reader{Options: o, document: d}
	f := &installConfig{}
	unread := r.fields(d.Decode(f))
	c := r.config(f)
	// What follows from a value that was not read is no fault of its own.
	r.errs = slices.DeleteFunc(r.errs, func(err *field.Error) bool {
		return slices.ContainsFunc(unread, func(path string) bool {
			return strings.HasPrefix(err.Field+".", path+".") && err.Type != field.ErrorTypeTypeInvalid
		})
	})
	if len(r.errs) > 0 {
		faults = d.Faults(r.errs)
		faults.Sort()
		return nil, r.warnings, faults
	}
	var err error
	if c.Raw, err = forOperators(d.JSON, c.Networking); err != nil {
		return nil, r.warnings, fmt.Errorf("%s: %w", file, err)
	}
	return c, r.warnings, nil
}

type reader struct {
	Options
	document *document.Document
	errs     field.ErrorList
	warnings []string
}

func (r *reader) add(err *field.Error) { r.errs = append(r.errs, err) }

func (r *reader) invalid(at string, value any, detail string) {
	r.add(field.Invalid(document.Path("%s", at), value, detail))
}

// secret is invalid for a value that is not printed.
func (r *reader) secret(at, detail string) { r.invalid(at, document.Omitted, detail) }

func (r *reader) required(at, detail string) { r.add(field.Required(document.Path("%s", at), detail)) }

func (r *reader) forbidden(at, detail string) {
	r.add(field.Forbidden(document.Path("%s", at), detail))
}

func (r *reader) oneOf(at, value string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		slices.Sort(values)
		r.add(field.NotSupported(document.Path("%s", at), value, slices.Compact(values)))
	}
}

func (r *reader) warn(at, why string) {
	r.warnings = append(r.warnings, fmt.Sprintf("%s: %s: without effect: %s", r.document.Place(at), at, why))
}

// fields looks the unknown fields up in Fields, and returns those with a value that was not read.
func (r *reader) fields(errs field.ErrorList) (unread []string) {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return r.document.Line(a.Field) - r.document.Line(b.Field) })
	for _, err := range errs {
		if err.Type != field.ErrorTypeForbidden {
			r.add(err)
			unread = append(unread, err.Field)
			continue
		}
		at := err.Field
		row, covered := rowOf(at)
		switch {
		case r.document.Empty(at):
			// As a generated file has "creationTimestamp: null".
		case !covered:
			advice := "see docs/install-fields.md for all fields"
			if meant := inAnotherCase(at); meant != "" {
				advice = "did you mean " + meant + "?"
			}
			r.forbidden(at, "unknown field; "+advice)
		case r.document.NoFields(at) && !strings.HasPrefix(at, "platform."):
			// {} sets nothing. Only a platform is chosen by its name alone.
		case row.Effect == Ignored:
			r.warn(at, row.Why)
		default:
			r.forbidden(at, row.Why+"; remove the field")
		}
	}
	return unread
}

// forOperators returns the file without the pull secret and with default networks: etcd's operator requires them.
func forOperators(text []byte, n Networking) ([]byte, error) {
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the file
	}
	if content["pullSecret"] != nil {
		content["pullSecret"] = ""
	}
	section, _ := content["networking"].(map[string]any)
	if section == nil {
		section = map[string]any{}
	}
	content["networking"] = section
	for name, value := range map[string]any{
		"networkType": n.NetworkType, "machineNetwork": n.machines(), "clusterNetwork": n.pods(), "serviceNetwork": n.ServiceNetwork,
	} {
		if given := section[name]; given == nil || given == "" {
			section[name] = value
		} else if list, isList := given.([]any); isList && len(list) == 0 {
			section[name] = value
		}
	}
	return yaml.Marshal(content) //nolint:wrapcheck // the caller names the file
}
