// SPDX-License-Identifier: Apache-2.0

// Package bundle writes and checks the files with which the Operator Lifecycle Manager (OLM) installs config/all: a
// bundle, and a file-based catalogue with it.
package bundle
