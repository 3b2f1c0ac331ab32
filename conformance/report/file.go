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

// ListKind is the kind of a document that holds several reports as its items. JSON has it in the place of YAML's documents.
const ListKind = Kind + "List"

// ErrReport says that a file is not a report. What is wrong follows, with the file, the report and the field.
var ErrReport = errors.New("not a conformance report")

type list struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Report `json:"items"`
}

// WriteYAML writes every report as a YAML document of its own. It fills in the head and the counts.
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

// WriteJSON writes one report as it is, and several as the items of a list of kind [ListKind]. It fills in the head and the counts.
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

// ReadFiles reads the reports of all files. A scenario may be there only once.
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
				return nil, fmt.Errorf("%w: %s: scenario: %q is in %s too", ErrReport, path, report.Scenario, other)
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
	defer file.Close() //nolint:errcheck // it was only read
	return Read(path, file)
}

// Read reads YAML documents or JSON. It takes nothing on trust: unknown fields, another kind, results that are doubled or that contradict
// themselves, and counts that are not those of the results are errors. The name is that of the file, for the errors.
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
		return nil, fmt.Errorf("%w: %s: there is no report in it", ErrReport, name)
	}
	return reports, validateAll(name, reports)
}

func validateAll(name string, reports []Report) error {
	var errs []error
	seen := map[string]bool{}
	for i, report := range reports {
		if err := report.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: report %d (%s): %w", ErrReport, name, i+1, report.Scenario, err))
		}
		if seen[report.Scenario] {
			errs = append(errs, fmt.Errorf("%w: %s: report %d: scenario: %q is there twice", ErrReport, name, i+1, report.Scenario))
		}
		seen[report.Scenario] = true
	}
	return errors.Join(errs...)
}

// decode returns the reports of one document; none for an empty one.
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
