// SPDX-License-Identifier: Apache-2.0

// Package olm installs a bundle as the Operator Lifecycle Manager does, as far as an embedded cluster shows: accounts,
// rights, Deployment, OperatorCondition and the other manifests. There is no catalogue and no upgrade.
package olm
