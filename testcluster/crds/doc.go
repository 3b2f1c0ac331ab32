// SPDX-License-Identifier: Apache-2.0

// Package crds finds and reads CustomResourceDefinitions of github.com/openshift/api, as an ordinary cluster has them.
package crds
