// Package store is an API server in memory, for control loops that run one after the other: what a loop has written is what
// the next one reads.
//
// The clients are client-go's and openshift/client-go's fakes, on their tracker that knows field managers, so server-side apply
// has the real merge and the real conflicts. The fakes leave out what control loops go by, and this package adds it:
// resourceVersions and the conflict of an update that carries an old one, an update that changes nothing and so is no write,
// status as a subresource, uids, creation times, generations, generated names, the default type of a Secret and its stringData,
// and lists in the order of an API server. Reads go to the store itself, never to a cache, so there is nothing to wait for.
// library-go's manifestclient was not taken: it records writes and does not apply them, and a Get after a Create fails
// (U-REN-3).
//
// There are no admission, no validation and no garbage collection, and a namespace need not exist before what is in it. Watches, lists
// by field and objects in another version of their API than they were written in are refused (ErrUnsupported). The managers of a status are recorded without its being one. TestLikeAPIServer compares the rest with a
// real API server.
//
// A Session is the API as one control loop sees it: it attributes every write to the loop, refuses writes that the loop did not
// declare, and remembers what the loop read.
package store
