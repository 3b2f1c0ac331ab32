// Package mustgather reads objects from a tree as "oc adm must-gather" and "oc adm inspect" write it:
//
//	cluster-scoped-resources/<group>/<resource>/<name>.yaml        one object
//	cluster-scoped-resources/<group>/<resource>.yaml               a list of them
//	namespaces/<namespace>/<group>/<resource>/<name>.yaml
//	namespaces/<namespace>/<group>/<resource>.yaml
//
// The core group is called "core". A must-gather puts each image's tree into a folder of its own; those are found too. The
// package is pure: it reads from an fs.FS and knows no operating system.
package mustgather
