// Package controller patches IngressController/default as package ingress decides.
package controller
