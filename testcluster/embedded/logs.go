// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CopyLogs copies the logs of all components and programs, and the audit log, into a folder, which it makes.
func (c *Cluster) CopyLogs(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the logs: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*.log"))
	if err != nil {
		return fmt.Errorf("find the logs: %w", err)
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, copyFile(file, filepath.Join(folder, filepath.Base(file))))
	}
	return errors.Join(errs...)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy a log: %w", err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copy a log: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy log %s: %w", filepath.Base(from), err)
	}
	return nil
}
