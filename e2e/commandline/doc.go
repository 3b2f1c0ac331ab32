// Package commandline is what the programs have in common that make clusters and machines for minutes: an interruption has them remove
// what they have made.
package commandline
