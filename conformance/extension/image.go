package extension

// images are those to mirror for a cluster that is cut off: checks.CopyImage, for where no pod of OpenShift runs a shell.
var images = []image{{Index: 1, Registry: "registry.k8s.io", Name: "pause", Version: "3.10"}}
