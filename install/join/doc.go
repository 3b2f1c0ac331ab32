// Package join lets the kubelet of one host into its own cluster: it approves the host's request for a client
// certificate, then that for a serving certificate, and nothing else. approver.Decide decides; its second source is
// what the installer knows about the host.
package join
