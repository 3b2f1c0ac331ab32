// SPDX-License-Identifier: Apache-2.0

// Package controller patches the console and downloads Deployments as package decision decides.
package controller
