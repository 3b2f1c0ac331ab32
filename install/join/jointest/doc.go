// SPDX-License-Identifier: Apache-2.0

// Package jointest makes the certificate requests of kubelets, and the certificates that they keep.
package jointest
