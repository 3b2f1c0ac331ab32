// SPDX-License-Identifier: Apache-2.0

// Package controller patches the Authentication of the operator and the two OAuth Deployments as package decision
// decides.
package controller
