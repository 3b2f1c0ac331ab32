// SPDX-License-Identifier: Apache-2.0

// Package command implements sno-render: it reads a folder of manifests, runs the loops, and writes a folder.
package command
