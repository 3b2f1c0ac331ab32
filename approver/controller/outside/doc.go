// Package outside is the outside tool that approves what it can prove: it reads the certificate signing requests, gathers what proves
// them, has package approver decide, and writes the approval. It is the only part of this module that approves anything, and it
// never runs beside the stock approver's node-client flow by itself: a person starts it, with an inventory, also from another cluster.
package outside
