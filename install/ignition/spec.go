// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	shared "github.com/coreos/ignition/v2/config/shared/errors"
	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
	"github.com/coreos/vcontext/report"
)

// ErrVersion is in the error of a config with a spec other than 3.0.0 to 3.6.0.
var ErrVersion = errors.New("spec that is not supported")

// Parsed is a parsed config.
type Parsed struct {
	Version string
	config  types.Config
}

// Parse parses a config of spec 3.0.0 to 3.6.0. name is its file or URL in errors. What Ignition would ignore is an
// error, because it would be lost.
func Parse(name string, text []byte) (*Parsed, error) {
	version, r, err := util.GetConfigVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrInvalid, errors.Join(entries(r), err))
	}
	c, r, err := v3_6.ParseCompatibleVersion(text)
	switch {
	case errors.Is(err, shared.ErrUnknownVersion):
		return nil, fmt.Errorf("%s: ignition.version: %w: %s; use one from 3.0.0 to 3.6.0", name, ErrVersion, version)
	case err != nil || len(lost(r).Entries) > 0:
		return nil, fmt.Errorf("%s: %w: %w", name, ErrInvalid, errors.Join(entries(lost(r)), err))
	}
	return &Parsed{Version: version.String(), config: c}, nil
}

func nodes(c types.Config) []types.Node {
	var all []types.Node
	for _, f := range c.Storage.Files {
		all = append(all, f.Node)
	}
	for _, d := range c.Storage.Directories {
		all = append(all, d.Node)
	}
	for _, l := range c.Storage.Links {
		all = append(all, l.Node)
	}
	return all
}

// specs are the versions that can be written, the lowest first.
var specs = []struct {
	version string
	check   func(text []byte) (report.Report, error)
}{
	{"3.2.0", func(text []byte) (report.Report, error) { _, r, err := v3_2.Parse(text); return r, err }},
	{"3.3.0", func(text []byte) (report.Report, error) { _, r, err := v3_3.Parse(text); return r, err }},
	{"3.4.0", func(text []byte) (report.Report, error) { _, r, err := v3_4.Parse(text); return r, err }},
	{"3.5.0", func(text []byte) (report.Report, error) { _, r, err := v3_5.Parse(text); return r, err }},
	{"3.6.0", func(text []byte) (report.Report, error) { _, r, err := v3_6.Parse(text); return r, err }},
}

// Encode returns the config in the lowest version of the spec with all fields, at least 3.2.0. The error has all
// conflicts, or is ErrInvalid.
func (b *Builder) Encode() ([]byte, error) {
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return encode(b.config, specs[0].version)
}

// encode writes the config in the lowest version, at least least, that Ignition accepts.
func encode(c types.Config, least string) ([]byte, error) {
	var last error
	for _, spec := range specs {
		if spec.version < least {
			continue
		}
		c.Ignition.Version = spec.version
		text, err := compact(c)
		if err != nil {
			return nil, err
		}
		r, err := spec.check(text)
		lost := lost(r)
		if err == nil && len(lost.Entries) == 0 {
			return text, nil
		}
		last = fmt.Errorf("%w: spec %s: %w", ErrInvalid, spec.version, errors.Join(entries(lost), err))
	}
	return nil, last
}

// lost returns errors, and warnings about keys that Ignition would drop because the spec does not have them. Other
// warnings, such as of a file system that is wiped, are accepted.
func lost(r report.Report) report.Report {
	var kept report.Report
	for _, e := range r.Entries {
		if e.Kind.IsFatal() || strings.HasPrefix(e.Message, "unused key ") {
			kept.Entries = append(kept.Entries, e)
		}
	}
	return kept
}

func entries(r report.Report) error {
	var errs []error
	for _, e := range r.Entries {
		errs = append(errs, fmt.Errorf("%s: %s", e.Context, e.Message)) //nolint:err113 // text of the library
	}
	return errors.Join(errs...)
}

// compact returns JSON with sorted keys and without empty objects, of which the types have many.
func compact(c types.Config) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	text, err = json.Marshal(prune(fields))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return text, nil
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			field = prune(field)
			if m, ok := field.(map[string]any); field == nil || ok && len(m) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return value
}
