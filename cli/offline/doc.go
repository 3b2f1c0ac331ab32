// Package offline reads a must-gather as if it were a cluster. Nothing of it can be written.
//
// A must-gather is rarely whole. What was not gathered looks as if it did not exist, and is noted as a Gap; so is a file that cannot be
// understood. Whoever reads has to say so.
package offline
