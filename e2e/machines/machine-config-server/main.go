// SPDX-License-Identifier: Apache-2.0

// Command machine-config-server stands in for the machine-config server of a running cluster (U-INS-17): it serves the
// config of a pool to machines that join, with the kubeconfig for their kubelets' first requests. Like the real one, it
// serves /config/POOL and /healthz by TLS only, and checks the spec versions that a client accepts. The real one
// renders MachineConfigs and converts them to the client's spec, including spec 2; this one has files of spec 3.2, and
// refuses older clients.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	address := flag.String("address", ":22623", "address to serve at")
	certificate := flag.String("certificate", "/etc/ssl/mcs/tls.crt", "certificate of the server")
	key := flag.String("key", "/etc/ssl/mcs/tls.key", "its key")
	pools := flag.String("pools", "/etc/mcs/pools", "folder with POOL.ign for each pool")
	kubeconfig := flag.String("kubeconfig", "/etc/mcs/bootstrap/lb-int.kubeconfig", "kubeconfig for the first requests of kubelets")
	flag.Parse()
	https := &http.Server{
		Addr: *address, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		Handler: server{pools: os.DirFS(*pools), kubeconfig: *kubeconfig}.handler(),
	}
	fmt.Fprintln(os.Stderr, "machine-config-server:", https.ListenAndServeTLS(*certificate, *key))
	os.Exit(1)
}
