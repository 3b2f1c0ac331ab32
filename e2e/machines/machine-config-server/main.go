// SPDX-License-Identifier: Apache-2.0

// Command machine-config-server stands in for the machine-config server of a running cluster (U-INS-17): it serves the
// config of a pool to machines that join, at /config/POOL by TLS. The real one renders the configs, with the kubeconfig
// for the first requests of kubelets, and checks the spec versions that a client accepts; here they are files.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	address := flag.String("address", ":22623", "address to serve at")
	certificate := flag.String("certificate", "/etc/ssl/mcs/tls.crt", "certificate of the server")
	key := flag.String("key", "/etc/ssl/mcs/tls.key", "its key")
	pools := flag.String("pools", "/etc/mcs/pools", "folder with POOL.ign for each pool")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /config/{pool}", func(w http.ResponseWriter, r *http.Request) {
		pool := r.PathValue("pool")
		slog.Info("Served", "pool", pool, "from", r.RemoteAddr, "userAgent", r.UserAgent(), "accept", r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/json")
		http.ServeFile(w, r, filepath.Join(*pools, pool+".ign"))
	})
	server := &http.Server{Addr: *address, ReadHeaderTimeout: time.Minute, Handler: mux}
	fmt.Fprintln(os.Stderr, "machine-config-server:", server.ListenAndServeTLS(*certificate, *key))
	os.Exit(1)
}
