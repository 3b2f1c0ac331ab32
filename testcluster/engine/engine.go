package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/assets"
)

var (
	// ErrNoEngine says that there is no engine, and what to do.
	ErrNoEngine = errors.New("no container engine answers")
	// ErrCommand says that the engine refused something.
	ErrCommand = errors.New("docker failed")
)

const (
	hostEnv       = "DOCKER_HOST"
	defaultSocket = "/var/run/docker.sock"
	answerTimeout = 10 * time.Second
)

// Engine is an engine that answered.
type Engine struct {
	// Host is its address, such as unix:///var/run/docker.sock. Empty: the client's own choice.
	Host string
}

// Find returns the engine that $DOCKER_HOST or the client's context names, or the one that hack/engine has started. The error says what was tried
// and how to get one.
func Find(ctx context.Context) (Engine, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return Engine{}, fmt.Errorf("%w: there is no docker command on PATH: %s", ErrNoEngine, advice)
	}
	own, err := ownSocket()
	if err != nil {
		return Engine{}, err
	}
	hosts := []string{""}
	if os.Getenv(hostEnv) == "" && isSocket(own) {
		hosts = append(hosts, "unix://"+own)
	}
	var tried []string
	for _, host := range hosts {
		e := Engine{Host: host}
		if _, err := e.within(ctx, answerTimeout, "version", "--format", "{{.Server.Version}}"); err == nil {
			return e, nil
		} else if ctx.Err() != nil {
			return Engine{}, fmt.Errorf("%w: %w", ErrNoEngine, ctx.Err())
		}
		tried = append(tried, describe(host))
	}
	return Engine{}, fmt.Errorf("%w: %s; %s", ErrNoEngine, strings.Join(tried, "; "), advice)
}

const advice = "start it (systemctl start docker), name another one in $DOCKER_HOST, or, as root on Debian, run hack/engine start, " +
	"which installs docker.io and debootstrap where they are missing"

// describe tells an engine that is dead from one that is not there.
func describe(host string) string {
	if host == "" {
		host = os.Getenv(hostEnv)
	}
	if host == "" {
		host = "unix://" + defaultSocket
	}
	path, unix := strings.CutPrefix(host, "unix://")
	switch {
	case !unix:
		return "nobody answers at " + host
	case isSocket(path):
		return "the socket " + path + " is there but " + why(path)
	default:
		return "there is no socket " + path
	}
}

func why(path string) string {
	connection, err := net.DialTimeout("unix", path, answerTimeout)
	if errors.Is(err, os.ErrPermission) {
		return "this user may not use it"
	}
	if err != nil {
		return "nobody listens behind it: its engine has died"
	}
	_ = connection.Close()
	return "what listens behind it does not answer as an engine"
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// ownSocket is where hack/engine puts its socket.
func ownSocket() (string, error) {
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(cache), "engine", "docker.sock"), nil
}

// Use has this process, and libraries that call the client, use the engine.
func (e Engine) Use() error {
	if e.Host == "" {
		return nil
	}
	return os.Setenv(hostEnv, e.Host) //nolint:wrapcheck // says it all
}

// Command is the client with its arguments.
func (e Engine) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	if e.Host != "" {
		cmd.Env = append(cmd.Environ(), hostEnv+"="+e.Host)
	}
	return cmd
}

// Output runs the client and returns what it prints, without the last newline.
func (e Engine) Output(ctx context.Context, args ...string) (string, error) {
	return e.Pipe(ctx, nil, args...)
}

// Pipe is Output with something on standard input.
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

func (e Engine) within(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return e.Output(ctx, args...)
}

// HasImage says that an image is loaded.
func (e Engine) HasImage(ctx context.Context, image string) (bool, error) {
	out, err := e.Output(ctx, "images", "--quiet", image)
	return out != "", err
}
