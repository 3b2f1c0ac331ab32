// Package proved remembers which steps of CI have passed on which bytes. The key of a step is a sum over its command, the modules that it is about
// with all that they require, the versions of all dependencies and the tools; so a step that would do the same again is not done again, and says
// what it relies on. What failed is never remembered.
package proved
