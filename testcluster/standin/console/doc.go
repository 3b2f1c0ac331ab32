// SPDX-License-Identifier: Apache-2.0

// Package console stands in for console-operator: the Deployments of the console and of downloads, with their budgets
// (U-CON-1, U-CON-2). There is no route, configuration or plugin.
package console
