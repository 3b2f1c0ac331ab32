// Package kubelet asks a node's kubelet for the certificate that it serves with. It proves nothing by itself: who presents a chain
// also has its key, since the handshake is finished, but whether the chain is worth anything is decided on by who asked.
package kubelet
