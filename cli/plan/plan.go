package plan

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
)

// Verdict is what would become of a field, or of an object.
type Verdict string

// The verdicts.
const (
	InForce Verdict = "in force" // ours, and as intended
	Own     Verdict = "own"      // stays as it is and becomes ours too
	Set     Verdict = "set"
	Remove  Verdict = "remove"
	Create  Verdict = "create"
	Delete  Verdict = "delete"
	Blocked Verdict = "blocked" // somebody else owns it
)

// Row is one field of one object. Of an object that would be made or deleted there is one row, without a field. The row of a module that
// has something to say beside its fields, or none, is without an object.
type Row struct {
	Object  string  `json:"object"`
	Field   string  `json:"field"`
	Live    string  `json:"live"`
	Desired string  `json:"desired"`
	Owner   string  `json:"owner"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

// Module is what one module would do.
type Module struct {
	Module  string `json:"module"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Rows    []Row  `json:"rows"`
	// Result is what the module would say as it is now, before anything is written.
	Result patch.Result `json:"-"`
	// Writes are the objects that would be written.
	Writes []rehearsal.Write `json:"-"`
}

// Options say how to look.
type Options struct {
	// ForceConflicts plans to take fields from whoever owns them.
	ForceConflicts bool
	// Releasing has the module give everything back.
	Releasing bool
	// Server is asked what it would make of each write, as a dry run; nil writes nothing, nowhere.
	Server client.Client
}

// Of has the module look at the cluster behind the client, which is only read.
func Of(ctx context.Context, cluster client.Client, m manager.Module, options Options) (Module, error) {
	before, err := rehearse(ctx, cluster, m, manager.Options{DryRun: true, ForceConflicts: options.ForceConflicts}, Options{Releasing: options.Releasing})
	if err != nil {
		return Module{}, err
	}
	out := Module{Module: m.Name()}
	out.is(before.result)
	after, err := rehearse(ctx, cluster, m, manager.Options{ForceConflicts: options.ForceConflicts}, options)
	if err != nil {
		return Module{}, err
	}
	if options.Server != nil && after.result.State == patch.Failed {
		out.is(after.result) // the API server's answer says more than what was decided without it
	}
	out.Writes = after.client.Writes()
	if out.Rows, err = rows(ctx, m, after.client, out); err != nil {
		return Module{}, err
	}
	if before.result.State == patch.Blocked && !options.ForceConflicts {
		forced, err := rehearse(ctx, cluster, m, manager.Options{ForceConflicts: true}, Options{Releasing: options.Releasing})
		if err != nil {
			return Module{}, err
		}
		out.Rows = append(out.Rows, blocked(out, forced.client.Writes())...)
	}
	if says(out) {
		out.Rows = append(out.Rows, Row{
			Object: ownership.None, Field: ownership.None, Live: ownership.None, Desired: ownership.None, Owner: ownership.None,
			Verdict: Verdict(words(out.Result.State)), Why: out.Message,
		})
	}
	return out, nil
}

// is takes the result over. There is no controller whose log would have the cause of a failure, so that is in the message.
func (m *Module) is(result patch.Result) {
	m.Result, m.State, m.Reason, m.Message = result, result.State.String(), result.Reason, Message(result)
}

// Message is what the result says, with its cause.
func Message(result patch.Result) string {
	if result.Err != nil {
		return result.Message + ": " + result.Err.Error()
	}
	return result.Message
}

// rehearsed is one look.
type rehearsed struct {
	client *rehearsal.Client
	result patch.Result
}

func rehearse(ctx context.Context, cluster client.Client, m manager.Module, with manager.Options, options Options) (rehearsed, error) {
	made, err := rehearsal.New(cluster, options.Server)
	if err != nil {
		return rehearsed{}, err
	}
	look, err := Looker(made, m, with, options.Releasing)
	if err != nil {
		return rehearsed{}, err
	}
	_, result, err := look(ctx)
	return rehearsed{made, result}, err
}

// Looker is how the module looks by a client, which it reads from and writes to. With releasing it gives everything back.
func Looker(by client.Client, m manager.Module, with manager.Options, releasing bool) (manager.Look, error) {
	if releasing {
		by = optedOut{by, m.Name()}
	}
	env, err := manager.Once(by, with, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name(), err)
	}
	look, err := m.Look(env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name(), err)
	}
	return func(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
		target, result, err := look(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Name(), err)
		}
		return target, result, err
	}, nil
}

// says tells whether the module's result says more than its rows.
func says(m Module) bool {
	switch m.Result.State {
	case patch.InForce, patch.WouldChange, patch.Blocked:
		return len(m.Rows) == 0
	case patch.NotNeeded, patch.OptedOut, patch.Progressing, patch.Waiting, patch.Reverted, patch.Failed:
		return true
	}
	return true
}

// words is the state in words: NotNeeded is "not needed".
func words(state patch.State) string {
	var out strings.Builder
	for i, r := range state.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
	}
	return strings.ToLower(out.String())
}
