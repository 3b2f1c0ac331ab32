// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"golang.org/x/crypto/ssh"
)

const (
	// SSHPort is the port of the machine for Exec, in Forwarded.
	SSHPort = 22
	// loginTimeout is for software on a busy machine.
	loginTimeout = 2 * time.Minute
)

// NewKey writes a new private key to a file, and returns it with the line that lets it in.
func NewKey(file string) (key ssh.Signer, authorized string, err error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err //nolint:wrapcheck // complete
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, "", err //nolint:wrapcheck // complete
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, "", err //nolint:wrapcheck // complete
	}
	if key, err = ssh.NewSignerFromKey(private); err != nil {
		return nil, "", err //nolint:wrapcheck // complete
	}
	return key, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), nil
}

// Exec runs a command on the machine as root and returns its output.
func (m *Machine) Exec(ctx context.Context, command ...string) (string, error) {
	return m.Pipe(ctx, nil, command...)
}

// Pipe does the same for a command that reads in.
func (m *Machine) Pipe(ctx context.Context, in io.Reader, command ...string) (string, error) {
	session, err := m.session(ctx)
	if err != nil {
		return "", fmt.Errorf("log in to machine %s: %w", m.config.Name, err)
	}
	defer session.Close()                                          //nolint:errcheck // the command has ended
	defer context.AfterFunc(ctx, func() { _ = session.Close() })() // the order of both does not matter
	var out, complaints bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = in, &out, &complaints
	if err := session.Run("sudo " + shellescape.QuoteCommand(command)); err != nil {
		return "", fmt.Errorf("run %q on machine %s: %w: %s", command, m.config.Name, errors.Join(ctx.Err(), err), strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// session opens a session on the only connection, since each one costs a machine in software seconds.
func (m *Machine) session(ctx context.Context) (*ssh.Session, error) {
	m.connecting.Lock()
	defer m.connecting.Unlock()
	if m.connection != nil {
		session, err := m.connection.NewSession()
		if err == nil {
			return session, nil
		}
		_ = m.connection.Close() // the machine was off
		m.connection = nil
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Forwarded(SSHPort))
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	connection, channels, requests, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{
		User: "core", Auth: []ssh.AuthMethod{ssh.PublicKeys(m.config.Key)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // it is a process of this user
	})
	if err != nil {
		_ = conn.Close()
		return nil, err //nolint:wrapcheck // complete
	}
	m.connection = ssh.NewClient(connection, channels, requests)
	return m.connection.NewSession() //nolint:wrapcheck // complete
}

// Reboot restarts the machine in order, and returns when it is on again.
func (m *Machine) Reboot(ctx context.Context) error {
	// The connection may end before the answer.
	if _, err := m.Exec(ctx, "systemctl", "reboot"); err != nil && ctx.Err() != nil {
		return err
	}
	if err := m.WaitPoweredOff(ctx); err != nil {
		return err
	}
	return m.PowerOn(ctx)
}
