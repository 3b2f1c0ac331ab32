// SPDX-License-Identifier: Apache-2.0

// Command web-server is a web server that returns the name of its replica.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	name, err := os.Hostname()
	if err == nil {
		server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, name)
		})}
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, "web-server:", err)
	os.Exit(1)
}
