// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/phase"
)

const (
	// Port of the endpoint on the machine, beside those of the machine-config server.
	Port = 22625
	// Path of the endpoint.
	Path = "/status"
)

// Read returns the statuses in status files, without secrets. Files that do not exist yet are skipped.
func Read(names ...string) ([]phase.Status, error) {
	var all []phase.Status
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var s phase.Status
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("the status in %s: %w", name, err)
		}
		redact(&s.Error)
		for i := range s.Phases {
			redact(&s.Phases[i].Error)
			redact(&s.Phases[i].WaitingFor)
		}
		all = append(all, s)
	}
	return all, nil
}

func redact(text *string) { *text = string(gather.Redact([]byte(*text))) }

// Serve answers GET requests for Path with what read returns, until the context ends. Everybody may read it.
func Serve(ctx context.Context, l net.Listener, certificate tls.Certificate, read func() ([]phase.Status, error)) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		all, err := read()
		var text []byte
		if err == nil {
			text, err = json.Marshal(all)
		}
		if err != nil {
			http.Error(w, "the status cannot be read", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // a client that went away
	})
	server := &http.Server{
		Handler: mux, ReadTimeout: requestLimit, WriteTimeout: requestLimit, MaxHeaderBytes: 1 << 13, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l, "", ""); ctx.Err() == nil {
		return fmt.Errorf("serve the status: %w", err)
	}
	return nil
}

// requestLimit limits one request.
const requestLimit = 10 * time.Second
