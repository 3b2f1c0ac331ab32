// SPDX-License-Identifier: Apache-2.0

// Package apply applies manifests to a new API server until all are applied, or some are refused (R-BIP-12, R-BIP-13).
//
// Objects are applied server-side, without force. A kind that is not served yet, a missing namespace, a lost connection
// and an overloaded server are retried until the context ends. What the server refuses is not retried, and does not
// stop the others. The error has every manifest that failed, with file, object, field and reason (U-INS-10). After a
// run was killed, the same call continues it (U-INS-11).
package apply
