// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Runner runs documents.
type Runner struct {
	// Program starts a shell on a cluster: sno-run, or what stands in for it. It gets the arguments of the document's
	// marker, reads commands from its standard input, and ends everything on SIGTERM.
	Program func(ctx context.Context, cluster Cluster) *exec.Cmd
	// Limit is the time that each command may take.
	Limit time.Duration
	// Progress is called for every line of the program's standard error, and for every command that has ended.
	Progress func(format string, args ...any)
}

// Result is the outcome of a document.
type Result struct {
	Document string
	// Run and NotRun are numbers of commands.
	Run, NotRun int
	Took        time.Duration
	// Failures are texts that begin with document:line.
	Failures []string
	// Updated is the document with the outputs of this run. It is empty if the outputs are as they were, or if a
	// command failed.
	Updated string
}

var (
	// errEnded is returned when there is no shell any more.
	errEnded = errors.New("the shell has ended")
	// errExit is followed by the exit code of a command that failed.
	errExit = errors.New("exit code")
	// errLimit is returned for a command that took too long.
	errLimit = errors.New("time limit reached")
)

// endLimit bounds the time in which a cluster is removed.
const endLimit = 30 * time.Second

// Run runs the commands of a document on a cluster of its own. A command that fails ends the run, and one that prints
// something else does not. The error is about the run itself.
func (r Runner) Run(ctx context.Context, d *Document) (result Result, err error) {
	started := time.Now()
	result = Result{Document: d.Name, NotRun: d.NotRun()}
	defer func() { result.Took = time.Since(started) }()
	commands, err := d.Commands(func(text string) (bool, error) { return complete(ctx, text) })
	if err != nil {
		return result, err
	}
	s, err := r.start(ctx, d)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	outputs := map[int][]string{}
	for i, c := range commands {
		began := time.Now()
		code, got, err := s.command(ctx, c.Text, r.Limit)
		if ctx.Err() != nil {
			return result, ctx.Err() //nolint:wrapcheck // an interruption
		}
		if err == nil && code != 0 {
			err = fmt.Errorf("%w %d", errExit, code)
		}
		verdict, failure := judge(c, got, err)
		result.Run++
		r.Progress("%s:%d  %s  %s (%.1f s)", d.Name, c.Line, firstLine(c.Text), verdict, time.Since(began).Seconds())
		if failure != "" {
			result.Failures = append(result.Failures, fmt.Sprintf("%s:%d: %s\n%s", d.Name, c.Line, c.Text, failure))
		}
		if err != nil {
			result.NotRun += len(commands) - i - 1
			return result, nil
		}
		outputs[i] = got
	}
	if len(result.Failures) > 0 {
		result.Updated = d.Update(outputs, commands)
	}
	return result, nil
}

// judge returns the outcome of a command in a few words, and what is wrong with it, if anything.
func judge(c Command, got []string, err error) (verdict, failure string) {
	if err != nil {
		return err.Error(), err.Error() + " after printing:\n" + strings.Join(got, "\n") + "\n"
	}
	if difference := diff(c.Want, got); c.Shown && difference != "" {
		const verdict = "prints something else"
		return verdict, verdict + " (-want +got):\n" + difference
	}
	return "ok", ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// session is a shell that runs commands one after the other.
type session struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers <-chan string
	scratch string
	// busy is true while a command runs.
	busy bool
}

// mark begins the lines of the shell's standard output that answer a command. The output of commands goes to a file.
const mark = "guide-command-ended"

// start returns when the shell of a document answers.
func (r Runner) start(ctx context.Context, d *Document) (*session, error) {
	scratch, err := os.MkdirTemp("", "sno-guide-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for outputs: %w", err)
	}
	s := &session{cmd: r.Program(ctx, *d.Cluster), scratch: scratch}
	// Its own group: Ctrl-C is for this process, which ends the others in order.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = endLimit
	s.cmd.Stderr = &linePrinter{print: r.Progress, prefix: d.Name}
	if s.stdin, err = s.cmd.StdinPipe(); err == nil {
		var stdout io.Reader
		if stdout, err = s.cmd.StdoutPipe(); err == nil {
			err = s.cmd.Start()
			s.answers = follow(stdout)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", s.cmd, err), os.RemoveAll(scratch))
	}
	if _, _, err := s.command(ctx, ":", 0); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: start a cluster of scenario %s: %w", d.Name, d.Cluster.Scenario, err), s.end())
	}
	return s, nil
}

// follow sends what the answers say, and is closed when the shell has ended.
func follow(stdout io.Reader) <-chan string {
	answers := make(chan string)
	go func() {
		defer close(answers)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			if answer, is := strings.CutPrefix(scanner.Text(), mark+" "); is {
				answers <- answer
			}
		}
	}()
	return answers
}

// command runs one command and returns its exit code and the lines that it printed, on standard output and standard
// error. With a limit of 0 it may take as long as it needs. After an error there is no shell any more.
func (s *session) command(ctx context.Context, text string, limit time.Duration) (code int, got []string, err error) {
	source, output := filepath.Join(s.scratch, "command"), filepath.Join(s.scratch, "output")
	// Background jobs may still write into the file of an earlier command.
	if err := errors.Join(os.RemoveAll(output), os.WriteFile(source, []byte(text+"\n"), 0o600)); err != nil {
		return 0, nil, fmt.Errorf("write a command: %w", err)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %s", errLimit, limit))
		defer cancel()
	}
	s.busy = true
	_, err = fmt.Fprintf(s.stdin, "{ source '%s'; } >'%s' 2>&1 </dev/null; echo '%s' $?\n", source, output, mark)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errEnded, err)
	}
	select {
	case answer, alive := <-s.answers:
		if s.busy = false; !alive {
			err = errEnded
			break
		}
		_, err = fmt.Sscan(answer, &code)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	printed, _ := os.ReadFile(output) // a shell that ended early made none
	if len(printed) > 0 {
		got = strings.Split(strings.TrimSuffix(string(printed), "\n"), "\n")
	}
	return code, got, err
}

// end ends the shell, its cluster and what runs in it. A command that still runs is killed.
func (s *session) end() error {
	_ = s.stdin.Close() // it may have ended before
	if s.busy {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	go func() {
		for range s.answers { // drop the remaining output
		}
	}()
	killed := time.AfterFunc(endLimit, func() { _ = s.cmd.Process.Kill() })
	defer killed.Stop()
	// Its exit code is of no interest: it was asked to end.
	_ = s.cmd.Wait()
	return os.RemoveAll(s.scratch) //nolint:wrapcheck // it names the folder
}

// linePrinter prints what is written, a line at a time.
type linePrinter struct {
	print  func(string, ...any)
	prefix string
	rest   string
}

func (l *linePrinter) Write(p []byte) (int, error) {
	l.rest += string(p)
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole {
			return len(p), nil
		}
		if l.rest = rest; strings.TrimSpace(line) != "" {
			l.print("%s  %s", l.prefix, strings.TrimSpace(line))
		}
	}
}
