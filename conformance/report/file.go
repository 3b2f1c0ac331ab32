// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ListKind is the kind of a JSON document with several reports as items.
const ListKind = Kind + "List"

// ErrReport is returned for a file that is not a valid report, with the file, the report and the field.
var ErrReport = errors.New("not a conformance report")

type list struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Report `json:"items"`
}

// WriteYAML writes one YAML document for each report. It sets the header and the counts.
func WriteYAML(w io.Writer, reports ...Report) error {
	for i, report := range complete(reports) {
		data, err := yaml.Marshal(report)
		if err != nil {
			return fmt.Errorf("report of %s: %w", report.Scenario, err)
		}
		if i > 0 {
			data = append([]byte("---\n"), data...)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes one report, or a list of kind [ListKind]. It sets the header and the counts.
func WriteJSON(w io.Writer, reports ...Report) error {
	completed := complete(reports)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if len(completed) == 1 {
		return encoder.Encode(completed[0])
	}
	return encoder.Encode(list{APIVersion: APIVersion, Kind: ListKind, Items: completed})
}

func complete(reports []Report) []Report {
	completed := slices.Clone(reports)
	for i := range completed {
		completed[i].APIVersion, completed[i].Kind = APIVersion, Kind
		completed[i].Count()
	}
	return completed
}

// ReadFiles reads the reports of all files. Scenarios must be unique.
func ReadFiles(paths ...string) ([]Report, error) {
	var all []Report
	from := map[string]string{}
	for _, path := range paths {
		reports, err := readFile(path)
		if err != nil {
			return nil, err
		}
		for _, report := range reports {
			if other, ok := from[report.Scenario]; ok {
				return nil, fmt.Errorf("%w: %s: scenario: %q is also in %s", ErrReport, path, report.Scenario, other)
			}
			from[report.Scenario] = path
		}
		all = append(all, reports...)
	}
	return all, nil
}

func readFile(path string) ([]Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	defer file.Close() //nolint:errcheck // only read
	return Read(path, file)
}

// Read reads YAML documents or JSON. Unknown fields, other kinds and duplicate results are errors. name is the name of
// the file in errors.
func Read(name string, r io.Reader) ([]Report, error) {
	var reports []Report
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrReport, name, err)
		}
		found, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: document %d: %w", ErrReport, name, number, err)
		}
		reports = append(reports, found...)
	}
	if len(reports) == 0 {
		return nil, fmt.Errorf("%w: %s: no report found", ErrReport, name)
	}
	var errs []error
	for i, report := range reports {
		if err := report.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: report %d (%s): %w", ErrReport, name, i+1, report.Scenario, err))
		}
	}
	return reports, errors.Join(errs...)
}

// validate returns all faults with which reports cannot be compared, each with its field.
func (r Report) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.APIVersion != APIVersion {
		fault("apiVersion: %q is not %s", r.APIVersion, APIVersion)
	}
	if r.Kind != Kind {
		fault("kind: %q is not %s", r.Kind, Kind)
	}
	if r.Scenario == "" {
		fault("scenario: it is empty")
	}
	seen := map[string]bool{}
	for i, result := range r.Results {
		switch {
		case result.ID == "":
			fault("results[%d].id: it is empty", i)
		case seen[result.ID]:
			fault("results[%d].id: %q is a duplicate", i, result.ID)
		case !slices.Contains(Statuses(), result.Status):
			fault("results[%d] (%s).status: %q is none of %v", i, result.ID, result.Status, Statuses())
		}
		seen[result.ID] = true
	}
	return errors.Join(errs...)
}

func decode(document []byte) ([]Report, error) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, nil
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Kind != ListKind {
		one := make([]Report, 1)
		return one, decodeStrict(data, &one[0])
	}
	var several list
	if err := decodeStrict(data, &several); err != nil {
		return nil, err
	}
	if several.APIVersion != APIVersion {
		return nil, fmt.Errorf("apiVersion: %q is not %s", several.APIVersion, APIVersion)
	}
	return several.Items, nil
}

func decodeStrict(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	return errors.Join(append(strict, err)...)
}
