// SPDX-License-Identifier: Apache-2.0

// Package ingress adapts the default ingress router to clusters with one control-plane node: one router, pinned to the
// control plane, because DNS still points at that node when workers are added later.
//
// An ingress operator vendors the package and calls [DefaultIngressController], [NewHost], [ShapeRouter] and
// [RouterPodDisruptionBudget]. For a stock operator, package controller patches IngressController/default as package
// decision decides. Every function is pure.
package ingress
