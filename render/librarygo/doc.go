// Package librarygo makes control loops for package loop out of library-go's controllers (U-REN-5). Of sno-render it is the
// only package that imports library-go, so that the rest builds without it.
//
// The controllers run as they are. What they get in place of informers reads the store itself: certificate rotation and resource
// sync read through listers, which are small types over a client here; the informers that constructors ask for are never started.
// A controller that hides an error in a condition of its operator, as resource sync does, returns it here.
package librarygo
