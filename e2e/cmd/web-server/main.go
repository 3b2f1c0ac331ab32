// SPDX-License-Identifier: Apache-2.0

// Command web-server is a web server that returns the name of its replica, and at /echo what a WebSocket sends.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/websocket"
)

func main() {
	name, err := os.Hostname()
	if err == nil {
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) })
		mux.Handle("/echo", websocket.Handler(func(connection *websocket.Conn) { _, _ = io.Copy(connection, connection) }))
		server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: mux}
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, "web-server:", err)
	os.Exit(1)
}
