// SPDX-License-Identifier: Apache-2.0

// Package librarygo makes control loops for package loop from library-go's controllers (U-REN-5). It is the only
// package of sno-render that imports library-go.
//
// The controllers are unchanged. Their listers read the store, and their informers are never started. An error that a
// controller only reports as a condition, as resource sync does, is returned.
//
// StaticPod has the loops that all operators of static pods have.
package librarygo
