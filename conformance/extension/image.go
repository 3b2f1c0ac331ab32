package extension

// CopyImage is what copies of Deployments run where nobody says otherwise. It does nothing, for ever.
const CopyImage = "registry.k8s.io/pause:3.10"

// images are those to mirror for a cluster that is cut off.
var images = []image{{Index: 1, Registry: "registry.k8s.io", Name: "pause", Version: "3.10"}}
