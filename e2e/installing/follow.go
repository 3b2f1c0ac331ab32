package installing

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// status is what a command of sno-install writes about its phases on a machine.
type status struct {
	State, Error, Advice string
	Phases               []struct {
		Name, State, WaitingFor string
		Started, Finished       *time.Time
	}
}

const done = "Done"

// statusOf reads what a command has written about itself; nothing before it has begun. A machine that is off has none.
func statusOf(ctx context.Context, on *nodemachine.Machine, command string) (s status, err error) {
	text, err := on.Exec(ctx, "sh", "-c", "cat /run/sno-install/"+command+".json 2>/dev/null || echo {}")
	if err != nil {
		return s, err //nolint:wrapcheck // it says of what
	}
	return s, json.Unmarshal([]byte(text), &s) //nolint:wrapcheck // it says what is wrong
}

// follow shows the phases of a command on a machine as they end, until the command has ended well. One that fails is started again by its unit; why it
// failed is shown.
func (m *Machine) follow(ctx context.Context, on *nodemachine.Machine, command string) error {
	shown, failed := 0, ""
	m.phases = nil
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if s, err := statusOf(ctx, on, command); err == nil {
			for ; shown < len(s.Phases) && s.Phases[shown].State == done; shown++ {
				p := s.Phases[shown]
				var took time.Duration
				if p.Started != nil && p.Finished != nil {
					took = p.Finished.Sub(*p.Started)
				}
				m.phases = append(m.phases, StepTime{Step: p.Name, Duration: took})
				m.say("  %s %.1f s", p.Name, took.Seconds())
			}
			if s.Error != failed {
				failed = s.Error
				m.say("  %s: %s", command, failed)
			}
			if s.State == done {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("wait for the end of "+command), ctx.Err()) //nolint:err113 // for the reader
		case <-ticker.C:
		}
	}
}
