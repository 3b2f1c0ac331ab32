// Package apply applies manifests to a new API server until all of them are there, or it is certain that some never will be (R-BIP-12,
// R-BIP-13).
//
// Each object is applied on the server's side, never by force. A kind that is not served yet, a namespace that is missing, a lost
// connection and an overloaded server are tried again until the context ends; what the server refuses is not, but the others go on. The
// error has every manifest that failed, with its file, object, field and reason: success means that all were applied (U-INS-10). The same
// call again goes on where a killed one was (U-INS-11).
package apply
