// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/catalogue"
)

// pipedNames reads names, one a line, unless the input is a terminal or /dev/null.
func pipedNames(in io.Reader) ([]string, error) {
	if in == nil {
		return nil, nil
	}
	if file, ok := in.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("read the standard input: %w", err)
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return nil, nil
		}
	}
	var names []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the standard input: %w", err)
	}
	return names, nil
}

// checksByName returns the checks in the catalogue's order, and the unknown names, each once: origin rejects a second
// result.
func (p Program) checksByName(names []string) (checks []catalogue.Check, unknownNames []string) {
	known := map[string]bool{}
	for _, check := range p.Catalogue {
		name := check.Name()
		known[name] = true
		if slices.Contains(names, name) {
			checks = append(checks, check)
		}
	}
	for _, name := range names {
		if !known[name] && !slices.Contains(unknownNames, name) {
			unknownNames = append(unknownNames, name)
		}
	}
	return checks, unknownNames
}
