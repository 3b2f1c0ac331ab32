// Package inputs reads the folder of manifests that static pods are rendered from, and checks it.
package inputs
