// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

type status struct {
	State, Error, Advice string
	Phases               []struct {
		Name, State, WaitingFor string
		Started, Finished       *time.Time
	}
}

const done = "Done"

// statusOf reads the status of a command. It is empty before the command has begun.
func statusOf(ctx context.Context, on *nodemachine.Machine, command string) (s status, err error) {
	text, err := on.Exec(ctx, "sh", "-c", "cat /run/sno-install/"+command+".json 2>/dev/null || echo {}")
	if err != nil {
		return s, err //nolint:wrapcheck // names the object
	}
	return s, json.Unmarshal([]byte(text), &s) //nolint:wrapcheck // describes the fault
}

// follow prints the phases of a command as they end, and its errors, until the command succeeds. Its unit restarts a
// failed one.
func (m *Machine) follow(ctx context.Context, on *nodemachine.Machine, command string) error {
	printed, failed := 0, ""
	m.phases = nil
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if s, err := statusOf(ctx, on, command); err == nil {
			for ; printed < len(s.Phases) && s.Phases[printed].State == done; printed++ {
				p := s.Phases[printed]
				var took time.Duration
				if p.Started != nil && p.Finished != nil {
					took = p.Finished.Sub(*p.Started)
				}
				m.phases = append(m.phases, StepTime{Step: p.Name, Duration: took})
				m.logf("  %s %.1f s", p.Name, took.Seconds())
			}
			if s.Error != failed {
				failed = s.Error
				m.logf("  %s: %s", command, failed)
			}
			if s.State == done {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("wait for the end of "+command), ctx.Err()) //nolint:err113 // printed only
		case <-ticker.C:
		}
	}
}
