// SPDX-License-Identifier: Apache-2.0

package extension

import "time"

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
