// SPDX-License-Identifier: Apache-2.0

// Package controller patches IngressController/default as package decision decides.
package controller
