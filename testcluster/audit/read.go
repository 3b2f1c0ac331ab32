// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// WriteVerbs are the verbs of write requests.
var WriteVerbs = sets.New("create", "update", "patch", "delete", "deletecollection")

// Read returns the events of a log from an offset in bytes that selects accepts, oldest first, and the next offset. A
// nil selects accepts all. An incomplete last line is left for the next call.
func Read(path string, offset int64, selects func(*auditv1.Event) bool) ([]auditv1.Event, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, offset, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, fmt.Errorf("audit log: %w", err)
	}
	var events []auditv1.Event
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, offset, nil
		}
		if err != nil {
			return events, offset, fmt.Errorf("audit log: %w", err)
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return events, offset, fmt.Errorf("audit log at byte %d: %w", offset, err)
		}
		offset += int64(len(line))
		if selects == nil || selects(&event) {
			events = append(events, event)
		}
	}
}
