// SPDX-License-Identifier: Apache-2.0

// Package suites contains the checks as Ginkgo specs for the test suite of an operator's repository (R-SUITE-3):
//
//	var _ = suites.Describe(suites.Inputs{
//		Target:  target, // a function that connects to the cluster under test
//		Modules: []string{"ingress"},
//	})
//
//	func TestConformance(t *testing.T) {
//		gomega.RegisterFailHandler(ginkgo.Fail)
//		suite, reporter := suites.Configuration()
//		ginkgo.RunSpecs(t, "ingress on a single node", suite, reporter)
//	}
//
// Every spec has the labels of [catalogue.Check.Labels]: --label-filter='tier:static && topology:SingleReplica'.
package suites
