// Package staticpods returns the files that an operator's installer pod lays down on a node: the static pod's manifest, a folder of
// resources for each revision, and the certificates, which have no revision (R-REN-8).
package staticpods
