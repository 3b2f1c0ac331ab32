// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/files"
)

// State of a phase.
type State string

// States of phases and commands.
const (
	Pending State = "Pending"
	Running State = "Running"
	Done    State = "Done"
	Failed  State = "Failed"
)

// Exit codes of a command that runs phases.
const (
	ExitDone    = 0
	ExitFailed  = 1 // the same command continues
	ExitInput   = 2 // the input has to be changed first
	ExitTimeout = 3 // a phase exceeded its limit; the same command continues
)

// Status is the content of a status file, for tools that install many machines (R-BIP-3).
type Status struct {
	Command string `json:"command"`
	// State is Running until the command ends.
	State State `json:"state"`
	// ExitCode is the command's; absent while it runs.
	ExitCode *int `json:"exitCode,omitempty"`
	// Error is the command's, and Advice what to do.
	Error  string `json:"error,omitempty"`
	Advice string `json:"advice,omitempty"`
	Phases []Step `json:"phases"`
	// Unwritable is why the status file could not be written, for reports: it stops no phase.
	Unwritable string `json:"-"`
}

// Step is the status of a phase. A phase that was done before has no times.
type Step struct {
	Name       string            `json:"name"`
	State      State             `json:"state"`
	Started    *metav1.MicroTime `json:"started,omitempty"`
	Finished   *metav1.MicroTime `json:"finished,omitempty"`
	WaitingFor string            `json:"waitingFor,omitempty"`
	Error      string            `json:"error,omitempty"`
}

// ExitCode returns the exit code for the error of Run.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrInput):
		return ExitInput
	case errors.Is(err, ErrLimit):
		return ExitTimeout
	}
	return ExitFailed
}

// ErrRunning is in the error of a second run of the same command.
var ErrRunning = errors.New("the same command is already running")

// lock prevents a second run of the command while the process lives. The returned function unlocks it. Where the file
// cannot be made, because of a full disk for example, the run goes on without.
func (r *run) lock() (func(), error) {
	if r.StatusFile == "" {
		return func() {}, nil
	}
	err := os.MkdirAll(filepath.Dir(r.StatusFile), 0o700)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(r.StatusFile+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		r.status.Unwritable = err.Error()
		return func() {}, nil
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { //nolint:gosec // a file descriptor is small
		_ = file.Close()
		return nil, fmt.Errorf("%w: see %s: %w", ErrRunning, r.StatusFile, err)
	}
	return func() { _ = file.Close() }, nil
}

type run struct {
	Options
	phases []Phase
	status Status
}

func newRun(phases []Phase, o Options) *run {
	r := &run{Options: o, phases: phases, status: Status{Command: o.Command, State: Running}}
	for _, p := range phases {
		r.status.Phases = append(r.status.Phases, Step{Name: p.Name, State: Pending})
	}
	return r
}

func timestamp(at time.Time) *metav1.MicroTime {
	t := metav1.NewMicroTime(at)
	return &t
}

// waiting reports what a phase waits for.
func (r *run) waiting(i int, what string) {
	if r.status.Phases[i].WaitingFor == what {
		return
	}
	r.status.Phases[i].WaitingFor = what
	r.changed()
}

func (r *run) end(err error) error {
	code := ExitCode(err)
	r.status.State, r.status.ExitCode = Done, &code
	if err != nil {
		r.status.State, r.status.Error, r.status.Advice = Failed, err.Error(), advice(code)
		var of *Error
		if errors.As(err, &of) {
			i := slices.IndexFunc(r.status.Phases, func(s Step) bool { return s.Name == of.Phase })
			r.status.Phases[i].State, r.status.Phases[i].Error = Failed, of.Err.Error()
		}
	}
	r.changed()
	return err
}

func advice(code int) string {
	switch code {
	case ExitInput:
		return "change what the error names, and run the same command again"
	case ExitTimeout:
		return "check what it waits for, and run the same command again; it continues with this phase"
	}
	return "run the same command again; it continues with this phase"
}

// changed writes the status file atomically, and calls Report.
func (r *run) changed() {
	if r.StatusFile != "" {
		r.status.Unwritable = ""
		if err := r.write(); err != nil {
			r.status.Unwritable = err.Error()
		}
	}
	if r.Report != nil {
		copied := r.status
		copied.Phases = slices.Clone(r.status.Phases)
		r.Report(copied)
	}
}

func (r *run) write() error {
	text, err := json.MarshalIndent(r.status, "", "  ")
	if err != nil {
		return err //nolint:wrapcheck // the report says what it is about
	}
	folder, err := os.OpenRoot(filepath.Dir(r.StatusFile))
	if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	_, err = files.Update(folder, files.File{Path: filepath.Base(r.StatusFile), Mode: 0o600, Content: append(text, '\n')})
	return errors.Join(err, folder.Close())
}
