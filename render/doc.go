// Package render renders the static pods of a control plane by running the control loops of its operators, in order, over an API in
// memory (R-REN-3 to R-REN-9): what an installer writes goes in, and all objects that exist at the end come out, with the files that
// an installer pod would lay down on the node.
//
//	cluster, err := inputs.Read(os.DirFS("manifests"), time.Now())
//	settings, err := cluster.Settings(inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2"})
//	result, err := render.Run(ctx, settings, render.Options{})
//
// Plan has the loops and their order, and shows how the components hang together: etcd first, since kube-apiserver needs its
// endpoints and certificates; then the signer of kube-controller-manager, whom kube-apiserver trusts; then kube-apiserver; then those
// that need its client certificates.
//
// The same input, clock and random numbers give the same bytes. Running the loops again over the objects of an earlier run writes
// nothing but what is due: Renew does that (R-REN-10).
package render
