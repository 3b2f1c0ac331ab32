package stable

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what one look at a cluster found.
type Report struct {
	// Moving is what has not come to rest, kind by kind.
	Moving []Moving `json:"moving,omitempty"`
	// Unknown is what could not be read. It may be moving.
	Unknown []Unknown `json:"unknown,omitempty"`
	// NotServed are the kinds that were left out because the cluster does not serve them.
	NotServed []string `json:"notServed,omitempty"`
	// Notes are what a person should know although it does not move.
	Notes []string `json:"notes,omitempty"`
	// Marks say by object what changes with it and cannot come back to what it was, so that a change between two looks is seen.
	Marks map[string]string `json:"-"`
}

// Moving is something that has not come to rest.
type Moving struct {
	// Object is its kind and name, with its namespace where it has one.
	Object string `json:"object"`
	// WaitsFor is what it waits for, in words.
	WaitsFor string `json:"waitsFor"`
	// Since is since when. Where the object does not tell, Look leaves it zero and Quiet says since when it was seen.
	Since metav1.Time `json:"since"`
}

func (m Moving) String() string { return m.Object + ": " + m.WaitsFor }

// AtRest tells whether everything is known and nothing moves.
func (r *Report) AtRest() bool { return len(r.Moving) == 0 && len(r.Unknown) == 0 }

// Look says what still moves.
func Look(s State) Report {
	r := Report{NotServed: s.NotServed, Unknown: s.Unknown, Marks: map[string]string{}}
	for _, kind := range s.NotServed {
		r.mark("kind "+kind, "not served") // when it comes to be served, the cluster has changed
	}
	r.clusterVersions(&s)
	r.clusterOperators(&s)
	r.pools(&s)
	r.nodes(&s)
	r.requests(&s)
	r.rollouts(&s)
	r.apiServers(&s)
	return r
}

func (r *Report) moving(object string, since metav1.Time, format string, args ...any) {
	r.Moving = append(r.Moving, Moving{Object: object, WaitsFor: fmt.Sprintf(format, args...), Since: since})
}

func (r *Report) mark(object string, parts ...any) { r.Marks[object] = fmt.Sprintln(parts...) }

// expect reports a kind that every cluster has some objects of, and this one none yet.
func (r *Report) expect(s *State, kind string, found int) {
	if found == 0 && s.knows(kind) {
		r.moving(kind, metav1.Time{}, "there is none yet")
	}
}

// name is how an object is called in reports.
func name(kind string, object metav1.Object) string {
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}

// condition is what the conditions of all kinds have in common.
type condition struct {
	kind, status, reason, message string
	since                         metav1.Time
}

func (c condition) String() string {
	text := c.kind + "=" + c.status
	if c.reason != "" {
		text += " (" + c.reason + ")"
	}
	if c.message != "" {
		text += ": " + firstLine(c.message)
	}
	return text
}

// mark is what changes with a condition. Its message may be written anew with the same meaning.
func (c condition) mark() string {
	return c.kind + "=" + c.status + "@" + c.since.UTC().Format(time.RFC3339)
}

// firstLine keeps reports readable: operators put lists of many lines into their messages.
func firstLine(message string) string {
	const most = 160
	line, _, more := strings.Cut(strings.TrimSpace(message), "\n")
	if runes := []rune(line); len(runes) > most {
		line, more = string(runes[:most]), true
	}
	if more {
		line += " ..."
	}
	return line
}
