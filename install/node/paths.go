package node

// Paths relative to the root of the machine, in the live system of bootstrap in place. All of it is in memory, and gone after the
// restart. Upstream's installer uses the same folder, and other tools read master.ign there (U-INS-6).
const (
	LiveDir          = "opt/openshift"
	LiveSettings     = LiveDir + "/sno-install.yaml"
	LiveManifests    = LiveDir + "/manifests"           // what create has written and what the user has added, to be rendered and applied
	ReleaseManifests = LiveDir + "/release-manifests"   // of the release payload
	Rendered         = LiveDir + "/rendered"            // output of sno-render
	NodeIgnition     = LiveDir + "/node.ign"            // what the user adds to the installed node
	OriginalIgnition = LiveDir + "/original-master.ign" // of the machine-config server
	MasterIgnition   = LiveDir + "/master.ign"          // enriched
	LiveSnapshot     = LiveDir + "/etcd-snapshot.db"
	LiveLogBundle    = LiveDir + "/log-bundle-bootstrap.tar.gz"
	Installed        = LiveDir + "/installed.json"   // which disk was written, with which config
	GivenIgnition    = LiveDir + "/given-master.ign" // what the user gives in place of the machine-config server's
	PullSecret       = "var/lib/kubelet/config.json"
)

// Paths on the installed node, relative to its root, that are there until the installation has ended.
const (
	BootstrapConfigs    = "etc/kubernetes/bootstrap-configs"
	BootstrapSettings   = BootstrapConfigs + "/sno-install.yaml"
	BootstrapSecrets    = "etc/kubernetes/bootstrap-secrets"
	BootstrapKubeconfig = BootstrapSecrets + "/kubeconfig"
	SnapshotDir         = "var/lib/sno-install"
	Snapshot            = SnapshotDir + "/etcd-snapshot.db"
	LogBundle           = "var/log/log-bundle-bootstrap.tar.gz"
	Program             = "usr/local/bin/sno-install"
	GatherScript        = "usr/local/bin/installer-gather.sh"         // where upstream's gather command expects it
	MastersGatherScript = "usr/local/bin/installer-masters-gather.sh" // what upstream's script runs on each node
	PostRebootUnit      = "post-reboot.service"
	RestoreUnit         = "etcd-restore.service"
	RestoreDropIn       = "10-etcd-restore.conf" // of kubelet.service
	UnitDir             = "etc/systemd/system"
	Preset              = "etc/systemd/system-preset/20-ignition.preset" // written by Ignition, a line for each unit
)

// Paths relative to the root that stay.
const (
	ProgramOfImage   = "usr/bin/sno-install" // where an image has the program
	ManifestDir      = "etc/kubernetes/manifests"
	ResourceDir      = "etc/kubernetes/static-pod-resources"
	EtcdData         = "var/lib/etcd"
	KubeletBootstrap = "etc/kubernetes/kubeconfig" // with which the kubelet asks for its certificate
)

// Paths of an all-in-one node, relative to the root. They stay: the certificates are renewed from there.
const (
	AllInOneDir       = "var/lib/sno"
	AllInOneSettings  = AllInOneDir + "/sno-install.yaml"
	AllInOneManifests = AllInOneDir + "/manifests"
	AllInOneRendered  = AllInOneDir + "/rendered"
	AllInOneDone      = AllInOneDir + "/installed"
)

// StatusDir is where the commands keep their status files, by their names, relative to the root. It is in memory.
const StatusDir = "run/sno-install"

// StaticPods are the manifests of the control plane's static pods in ManifestDir, in the order in which they start.
var StaticPods = []string{"etcd-pod.yaml", "kube-apiserver-pod.yaml", "kube-controller-manager-pod.yaml", "kube-scheduler-pod.yaml"}
