// Package rotate renews a rendered control plane in place (R-REN-10): it compares two results, and lays the files that differ on a
// node, in an order that lets a crash in between do no harm.
package rotate
