// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/assets"
)

var (
	// ErrNoEngine is returned with what to do when no engine answers.
	ErrNoEngine = errors.New("no container engine answers")
	// ErrCommand is returned when a command of the client fails.
	ErrCommand = errors.New("docker failed")
)

const (
	hostEnv       = "DOCKER_HOST"
	answerTimeout = 10 * time.Second
)

// Engine is a running container engine.
type Engine struct {
	// Host is its address, such as unix:///var/run/docker.sock. Empty: the default of the client.
	Host string
}

// Find returns the engine that $DOCKER_HOST or the client's context names, or the one that hack/engine has started.
// The error has what the client said and how to get an engine.
func Find(ctx context.Context) (Engine, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return Engine{}, fmt.Errorf("%w: there is no docker command on PATH: %s", ErrNoEngine, advice)
	}
	own, err := ownSocket()
	if err != nil {
		return Engine{}, err
	}
	hosts := []string{""}
	if info, err := os.Stat(own); err == nil && os.Getenv(hostEnv) == "" && info.Mode().Type() == os.ModeSocket {
		hosts = append(hosts, "unix://"+own)
	}
	var errs []error
	for _, host := range hosts {
		e := Engine{Host: host}
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		_, err := e.Output(asking, "version", "--format", "{{.Server.Version}}")
		cancel()
		if err == nil {
			return e, nil
		}
		errs = append(errs, err)
	}
	return Engine{}, fmt.Errorf("%w: %w; %s", ErrNoEngine, errors.Join(errs...), advice)
}

const advice = "start it (systemctl start docker), name another one in $DOCKER_HOST, or, as root on Debian, run hack/engine start, " +
	"which installs docker.io and debootstrap where they are missing"

func ownSocket() (string, error) {
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(cache), "engine", "docker.sock"), nil
}

// Use sets the engine for this process and for libraries that call the client.
func (e Engine) Use() error {
	if e.Host == "" {
		return nil
	}
	return os.Setenv(hostEnv, e.Host) //nolint:wrapcheck // complete
}

// Command returns a command of the client.
func (e Engine) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	if e.Host != "" {
		cmd.Env = append(cmd.Environ(), hostEnv+"="+e.Host)
	}
	return cmd
}

// Output runs the client and returns its output, without the last newline.
func (e Engine) Output(ctx context.Context, args ...string) (string, error) {
	return e.Pipe(ctx, nil, args...)
}

// Pipe is Output with standard input.
func (e Engine) Pipe(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := e.Command(ctx, args...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("docker %s: %w", args[0], ctx.Err())
		}
		return "", fmt.Errorf("%w: docker %s: %w: %s", ErrCommand, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// HasImage reports whether an image is loaded.
func (e Engine) HasImage(ctx context.Context, image string) (bool, error) {
	out, err := e.Output(ctx, "images", "--quiet", image)
	return out != "", err
}
