// SPDX-License-Identifier: Apache-2.0

// Package extension implements the program sno-tests: the checks of package catalogue for OpenShift's test runner, as
// an external binary of origin and CI (R-SUITE-3), and commands for people.
//
// The process contract is implemented here as origin reads it. Its library is not used, because it needs a replace
// directive for a fork of Ginkgo in every importing module. Only results are written to standard output; progress goes
// to standard error. The checks run without Ginkgo, whose reporter writes to standard output.
package extension
