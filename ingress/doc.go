// Package ingress makes the default ingress router fit clusters with one control-plane node: one router where the topology asks for one,
// pinned to the control plane, so that it does not float to a worker that is added later while DNS still points at the first node.
//
// An ingress operator that vendors the package calls [DefaultIngressController], [NewHost], [ShapeRouter] and [RouterPodDisruptionBudget].
// Where the stock operator does none of this, the controller in package controller patches IngressController/default by [Decide]. Every
// function here is pure. The README lists the requirements.
package ingress
