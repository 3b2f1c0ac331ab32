// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"crypto/sha512"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// accepted requests a spec that every version of Ignition 3 reads (U-INS-6).
const accepted = "application/vnd.coreos.ignition+json;version=3.2.0"

// configServerURL is the master config of the machine-config server that this machine runs (U-INS-35).
const configServerURL = "http://localhost:22624/config/master"

// originalLimit is larger than any master config, and protects the memory.
const originalLimit = 64 << 20

// fetchLimit limits one request, since a server may accept it and never answer.
const fetchLimit = time.Minute

var errServer = errors.New("the machine-config server has no config")

func (l *live) hasOriginal(context.Context) (bool, error) {
	text, err := os.ReadFile(l.Path(node.OriginalIgnition))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the master config: %w", err)
	}
	_, err = ignition.Parse(node.OriginalIgnition, text)
	return err == nil, nil
}

// fetchOriginal reads the master config from a server or a file (R-BIP-11, U-INS-6). A server without one is retried. A
// config that cannot be read is an input error.
func (l *live) fetchOriginal(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err
	}
	if s.MasterIgnition == "" {
		s.MasterIgnition = configServerURL
	}
	from, name := s.MasterIgnition, "/"+node.OriginalIgnition
	var text []byte
	if strings.HasPrefix(from, "/") {
		name = from
		if text, err = os.ReadFile(l.Path(from)); err != nil {
			return fmt.Errorf("read the master config: %w: %w", err, phase.ErrInput)
		}
	} else if text, err = l.download(ctx, s, p); err != nil {
		return err
	}
	if _, err := ignition.Parse(name, text); err != nil {
		return fmt.Errorf("the master config: %w: %w", err, phase.ErrInput)
	}
	return l.WriteFiles(files.File{Path: node.OriginalIgnition, Mode: 0o600, Content: text}) //nolint:wrapcheck // it names the file
}

// download reads the config from a server that is proven to have it, by https or by the sum of the content. Redirects
// must lead to such a server too.
func (l *live) download(ctx context.Context, s *node.Settings, p *phase.Progress) (text []byte, err error) {
	from, err := url.Parse(s.MasterIgnition)
	if err == nil {
		err = s.TrustsMasterConfig(from)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	roots, err := s.MasterConfigRoots()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > maxRedirects {
			return fmt.Errorf("%w: more than %d redirects", errServer, maxRedirects)
		}
		return s.TrustsMasterConfig(next.URL)
	}}
	name := from.Redacted()
	err = p.Until(ctx, l.Interval, "the master config at "+name, func(ctx context.Context) (err error) {
		if text, err = fetch(ctx, client, from); err != nil {
			return err
		}
		if sum := sha512.Sum512(text); s.MasterIgnitionSHA512 != "" && hex.EncodeToString(sum[:]) != s.MasterIgnitionSHA512 {
			return fmt.Errorf("%w: %s answers with another content: its SHA-512 sum is %x", node.ErrUntrusted, name, sum)
		}
		return nil
	})
	return text, err
}

const maxRedirects = 5

func fetch(ctx context.Context, client *http.Client, from *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	request.Header.Set("Accept", accepted)
	response, err := client.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the URL, without a password
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s answers %s", errServer, from.Redacted(), response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, originalLimit+1))
	if err == nil && len(text) > originalLimit {
		err = fmt.Errorf("%w: %s sends more than %d MiB: %w", errServer, from.Redacted(), originalLimit>>20, phase.ErrInput)
	}
	return text, err
}

// enrich writes the config of the installed node. Every run writes the same until the disk is written.
func (l *live) enrich(context.Context, *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err
	}
	from := "/" + node.OriginalIgnition
	if strings.HasPrefix(s.MasterIgnition, "/") {
		from = s.MasterIgnition // a person may have changed it
	}
	original, err := os.ReadFile(l.Path(from))
	if err != nil {
		return fmt.Errorf("read the master config: %w", err)
	}
	additions, err := l.additions(s)
	if err != nil {
		return err
	}
	text, err := ignition.Enrich(from, original, additions)
	if err != nil {
		return fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	return l.WriteFiles(files.File{Path: node.MasterIgnition, Mode: 0o600, Content: text}) //nolint:wrapcheck // it names the file
}
