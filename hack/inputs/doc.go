// Package inputs sums up what a result depends on: the files of modules and of those that they require, the versions of all dependencies, and the
// tools. Two runs with the same sums are runs of the same bytes.
package inputs
