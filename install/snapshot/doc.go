// Package snapshot saves etcd's data to a file, verifies the file, and makes a new member's data out of it (R-BIP-10, U-INS-7).
//
// A file is never half: it is saved and verified under another name. Neither is a member: it is restored aside and moved into its place
// in one step. A member that was killed before it formed its cluster is removed, since it can never start.
package snapshot
