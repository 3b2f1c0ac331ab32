// Package files writes many files as one: all of them, or none.
//
// Everything is written into a temporary folder beside the target and synced, and only then renamed. A full disk, a missing permission
// or a crash leaves the target as it was. What a crashed run left behind is removed by the next.
package files
