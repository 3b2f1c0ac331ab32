// SPDX-License-Identifier: Apache-2.0

// Package render renders the static pods of a control plane by running the control loops of its operators, in order,
// over an API in memory (R-REN-3 to R-REN-9). The input is what an installer writes. The result has all objects, and
// the files that an installer pod would write to the node.
//
//	cluster, err := inputs.Read(os.DirFS("manifests"), time.Now())
//	settings, err := cluster.Settings(inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2"})
//	result, err := render.Run(ctx, settings, render.Options{})
//
// Plan returns the loops in their order. The same input, clock and random numbers give the same bytes. Renew runs the
// loops over the objects of an earlier run and changes only what is due (R-REN-10).
package render
