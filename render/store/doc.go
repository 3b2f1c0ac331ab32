// SPDX-License-Identifier: Apache-2.0

// Package store is an API server in memory for control loops that run one after the other.
//
// It uses the fakes of client-go and openshift/client-go with the tracker for field managers, so that server-side apply
// merges and conflicts as on a server. The package adds what the fakes lack and control loops need: resourceVersions
// and conflicts, updates without a change, the status subresource, uids, creation times, generations, generated names,
// defaults of Secrets, and ordered lists. There is no cache. library-go's manifestclient cannot be used: it does not
// apply writes (U-REN-3).
//
// There is no admission, validation or garbage collection, and objects do not need their namespace. Watches, lists by
// field and other versions of an API than the one written are refused (ErrUnsupported). Managers of a status are
// recorded without the subresource. TestLikeAPIServer compares the rest with a real API server.
//
// A Session is the API for one control loop: it attributes writes to the loop, refuses undeclared ones, and records
// reads.
package store
