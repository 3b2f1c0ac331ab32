// Package verify holds the checks of `make verify`: what the compiler and the tests cannot see. Every step runs, also after
// one failed, so that a person sees all faults at once; a table at the end says which ones failed.
package verify
