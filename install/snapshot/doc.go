// SPDX-License-Identifier: Apache-2.0

// Package snapshot saves etcd's data to a file, verifies the file, and restores a new member from it (R-BIP-10,
// U-INS-7).
//
// Files and members are complete or absent: a file is saved and verified under another name, and a member is restored
// in another folder, and then moved. A member that was killed before it formed its cluster is removed, since it can
// never start.
package snapshot
