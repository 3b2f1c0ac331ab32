// SPDX-License-Identifier: Apache-2.0

// Package modules tests the modules on a real API server, with a folder for each. They are in a Go module of their own,
// so that who vendors a module does not require what only its tests need. A module's controller is tested with a
// [Suite].
package modules
