// SPDX-License-Identifier: Apache-2.0

// Package agent decides what a spoke of the fleet gets: it implements agent.AgentAddon of the add-on framework, with no
// client of its own. The controllers are what `kubectl sno render` prints for the modules of the cluster's
// configuration; nothing on a spoke has credentials of the hub.
package agent
