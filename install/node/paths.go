package node

// Paths on the installed node, relative to its root, that are there until the installation has ended.
const (
	BootstrapConfigs  = "etc/kubernetes/bootstrap-configs"
	BootstrapSettings = BootstrapConfigs + "/sno-install.yaml"
	SnapshotDir       = "var/lib/sno-install"
	Snapshot          = SnapshotDir + "/etcd-snapshot.db"
)

// Paths relative to the root that stay.
const (
	ManifestDir = "etc/kubernetes/manifests"
	EtcdData    = "var/lib/etcd"
)

// StatusDir is where the commands keep their status files, by their names, relative to the root. It is in memory.
const StatusDir = "run/sno-install"
