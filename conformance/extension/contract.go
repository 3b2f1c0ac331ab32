// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// apiVersion is that of the contract. origin omits flags that are newer.
const apiVersion = "v1.1"

// timeLayout is what origin parses; its enhancement names another layout.
const timeLayout = "2006-01-02 15:04:05.000000 UTC"

// Values of lifecycles and results.
const (
	blocking  = "blocking"
	informing = "informing"

	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

type info struct {
	APIVersion string    `json:"apiVersion"`
	Source     Build     `json:"source"`
	Component  component `json:"component"`
	Suites     []suite   `json:"suites"`
	Images     []image   `json:"images"`
}

type component struct {
	Product string `json:"product"`
	Type    string `json:"type"`
	Name    string `json:"name"`
}

func (c component) String() string { return c.Product + ":" + c.Type + ":" + c.Name }

var self = component{Product: "sno", Type: "external", Name: "conformance"}

type suite struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Qualifiers are CEL expressions over a test, at least one of which must be true.
	Qualifiers       []string      `json:"qualifiers"`
	ClusterStability string        `json:"clusterStability,omitempty"`
	TestTimeout      time.Duration `json:"testTimeout,omitempty"`
	// label is that of its checks; empty for all.
	label string
}

type image struct {
	Index    int    `json:"index"`
	Registry string `json:"registry"`
	Name     string `json:"name"`
	Version  string `json:"version"`
}

type spec struct {
	Name         string `json:"name"`
	OriginalName string `json:"originalName,omitempty"`
	// Labels are a set; the contract encodes it as an object.
	Labels              map[string]struct{} `json:"labels"`
	Resources           resources           `json:"resources"`
	Source              string              `json:"source"`
	Lifecycle           string              `json:"lifecycle"`
	EnvironmentSelector environmentSelector `json:"environmentSelector"`
}

type resources struct {
	Isolation isolation `json:"isolation"`
}

type isolation struct{}

type environmentSelector struct {
	Include string `json:"include,omitempty"`
}

type testResult struct {
	Name      string `json:"name"`
	Lifecycle string `json:"lifecycle"`
	// Duration is in milliseconds.
	Duration  int64    `json:"duration"`
	StartTime string   `json:"startTime"`
	EndTime   string   `json:"endTime"`
	Result    string   `json:"result"`
	Output    string   `json:"output"`
	Error     string   `json:"error,omitempty"`
	Details   []detail `json:"details,omitempty"`
}

type detail struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// images must be mirrored for disconnected clusters: runner.CopyImage, for clusters where no pod of OpenShift runs a
// shell.
var images = []image{{Index: 1, Registry: "registry.k8s.io", Name: "pause", Version: "3.10"}}

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

func (p Program) info() *cobra.Command {
	return contract(&cobra.Command{
		Use: "info", Short: "Print the description of this extension", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return encodeOne(p.Out, info{APIVersion: apiVersion, Source: p.Build, Component: self, Suites: p.suites(), Images: images})
		},
	})
}

func (p Program) images() *cobra.Command {
	return contract(&cobra.Command{
		Use: "images", Short: "Print the images that the checks need", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return encodeOne(p.Out, images) },
	})
}

// Build describes the program according to the contract.
type Build struct {
	Commit       string `json:"commit"`
	BuildDate    string `json:"build_date"`
	GitTreeState string `json:"git_tree_state"`
}

// ReadBuild returns the version-control information of the Go build, if any.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{}
	}
	var b Build
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.BuildDate = setting.Value
		case "vcs.modified":
			b.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	return b
}

// String returns the version for reports.
func (b Build) String() string {
	if b.Commit == "" {
		return ""
	}
	if b.GitTreeState == "dirty" {
		return b.Commit + "-dirty"
	}
	return b.Commit
}

// linkedVersion is set by the linker in archives of a release (make dist).
var linkedVersion string

// releaseVersion returns the version of the release, or that of the module for `go install MODULE@VERSION`.
func releaseVersion() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
