// Package kubeconfig says what is wrong with a kubeconfig in one line, in a second: `make conformance KUBECONFIG=file` asks it before anything is
// built. It only rejects what cannot work; the program that connects has the last word.
package kubeconfig
