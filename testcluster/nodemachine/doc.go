// Package nodemachine runs machines: containers with a disk of their own that start systemd, containerd and a real kubelet from it. The disk is a volume of
// the engine that is filled from the image of kind's nodes (package nodeimage), and it is all that outlives a reboot or a power cut. What a
// machine does with its disk is up to whoever uses it: nothing of a cluster is on it at first, and no kubelet runs without a configuration.
package nodemachine
