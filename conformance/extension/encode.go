// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errFormat = errors.New("unknown output format")

const (
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatNames = "names"
)

func encode[T any](w io.Writer, format string, items []T, name func(T) string) error {
	switch format {
	case formatJSON:
		return encodeOne(w, items)
	case formatJSONL:
		encoder := newEncoder(w)
		for _, item := range items {
			if err := encoder.Encode(item); err != nil {
				return err
			}
		}
		return nil
	case formatNames:
		for _, item := range items {
			if _, err := fmt.Fprintln(w, name(item)); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("%w %q, want %s, %s or %s", errFormat, format, formatJSON, formatJSONL, formatNames)
	}
}

// newEncoder does not escape &&: results are not embedded in HTML.
func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

func encodeOne(w io.Writer, document any) error {
	encoder := newEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

type sink struct {
	w      io.Writer
	format string
	all    []testResult
	err    error
}

func newSink(w io.Writer, format string) (*sink, error) {
	if format != formatJSON && format != formatJSONL {
		return nil, fmt.Errorf("%w %q, want %s or %s", errFormat, format, formatJSON, formatJSONL)
	}
	return &sink{w: w, format: format, all: []testResult{}}, nil
}

func (s *sink) put(r testResult) {
	s.all = append(s.all, r)
	if s.format == formatJSONL {
		s.err = errors.Join(s.err, newEncoder(s.w).Encode(r))
	}
}

func (s *sink) end() error {
	if s.format == formatJSON {
		s.err = errors.Join(s.err, encodeOne(s.w, s.all))
	}
	return s.err
}

func (s *sink) hasBlockingFailure() bool {
	for _, r := range s.all {
		if r.Result == failed && r.Lifecycle == blocking {
			return true
		}
	}
	return false
}
