// Package nodeimage gets the image that the nodes of a kind cluster run: kindest/node of the Kubernetes version of testcluster/kube where it is loaded or can be
// pulled, and otherwise one that is built here from Debian's packages and the programs of package assets, which behaves the same. A build
// takes some minutes once; it stays in the engine, and as an archive in the cache folder, from which a fresh engine has it in seconds.
package nodeimage
