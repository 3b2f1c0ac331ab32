// Package loop runs control loops one after the other over the API in memory of package store: each once, in the declared order,
// and a declared cycle until a whole round writes nothing (R-REN-4, R-REN-5).
//
// Nothing about the order is taken on trust. What a loop writes must be declared, and what it reads must not change any more once
// it has run: if a loop that comes later writes something that an earlier one has read, or looked for in vain, the run fails and
// names both. So a wrong order never gives a plausible result.
package loop
