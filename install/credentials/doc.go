// Package credentials makes what an installer hands out with the config of a node, and keeps it in a folder for the next run: the
// cluster's identity, the administrator's kubeconfig and password, and the CA by which machines trust the machine-config server.
package credentials
