// SPDX-License-Identifier: Apache-2.0

// Package controller is the add-on's manager on a hub: the controllers of the add-on framework with our agent, on
// caches of what the agent reads.
package controller
