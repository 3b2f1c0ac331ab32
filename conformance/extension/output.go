// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/solonode/sno/conformance/report"
)

type encoder func(io.Writer, ...report.Report) error

var encoders = map[string]encoder{
	".yaml": report.WriteYAML, ".json": report.WriteJSON, ".xml": report.WriteJUnit,
	".html": func(w io.Writer, reports ...report.Report) error {
		return report.WriteHTML(w, report.HTML{Reports: reports})
	},
}

var folderFiles = []string{"report.yaml", "report.json", "junit.xml", "report.html"}

// outputFiles expands folders to their files and creates the folders, so that invalid names fail before the run.
func outputFiles(outputs []string) ([]string, error) {
	var files []string
	for _, output := range outputs {
		folder := output
		if _, ok := encoders[filepath.Ext(output)]; ok {
			folder = filepath.Dir(output)
			files = append(files, output)
		} else {
			for _, name := range folderFiles {
				files = append(files, filepath.Join(output, name))
			}
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("output %s: %w", output, err)
		}
	}
	return files, nil
}

func writeFile(name string, done report.Report, encode encoder) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := encode(file, done); err != nil {
		_ = file.Close() // the first error is more specific
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// WriteFolder writes a report into a folder in all formats, with the names of run -o.
func WriteFolder(folder string, done report.Report) error {
	files, err := outputFiles([]string{folder})
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := writeFile(file, done, encoders[filepath.Ext(file)]); err != nil {
			return err
		}
	}
	return nil
}
