// Package joining plays nodes that want certificates on an embedded cluster: the bootstrapper that asks for a node that joins, the node
// that asks for itself, its kubelet as far as TLS goes, and the outside tool that approves. The requests are real, and so are the
// controllers that sign them.
package joining
