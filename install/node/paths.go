// SPDX-License-Identifier: Apache-2.0

package node

// Paths in the live system of bootstrap in place, relative to the root. They are in memory until the restart.
// Upstream's installer uses the same folder, where other tools read master.ign (U-INS-6).
const (
	LiveDir            = "opt/openshift"
	LiveSettings       = LiveDir + "/sno-install.yaml"
	LiveManifests      = LiveDir + "/manifests"           // generated and the user's, to be rendered and applied
	Rendered           = LiveDir + "/rendered"            // output of sno-render
	NodeAdditions      = LiveDir + "/node.ign"            // the user's additions to the installed node
	OriginalIgnition   = LiveDir + "/original-master.ign" // from the machine-config server
	MasterIgnition     = LiveDir + "/master.ign"          // enriched
	LiveSnapshot       = LiveDir + "/etcd-snapshot.db"
	LiveLogBundle      = LiveDir + "/log-bundle-bootstrap.tar.gz"
	InstalledRecord    = LiveDir + "/installed.json"   // record of the disk and its config
	UserMasterIgnition = LiveDir + "/given-master.ign" // the user's, instead of the machine-config server's
	PullSecret         = "var/lib/kubelet/config.json"
)

// Paths on the installed node, relative to its root, until the installation has ended.
const (
	BootstrapConfigs    = "etc/kubernetes/bootstrap-configs"
	BootstrapSettings   = BootstrapConfigs + "/sno-install.yaml"
	BootstrapStatus     = BootstrapConfigs + "/bootstrap-in-place.json" // the status of the bootstrap phase
	BootstrapSecrets    = "etc/kubernetes/bootstrap-secrets"
	BootstrapKubeconfig = BootstrapSecrets + "/kubeconfig"
	SnapshotDir         = "var/lib/sno-install"
	Snapshot            = SnapshotDir + "/etcd-snapshot.db"
	LogBundle           = "var/log/log-bundle-bootstrap.tar.gz"
	Program             = "usr/local/bin/sno-install"
	GatherScript        = "usr/local/bin/installer-gather.sh"         // upstream's gather command runs it
	MastersGatherScript = "usr/local/bin/installer-masters-gather.sh" // upstream's script runs it on each node
	PostRebootUnit      = "post-reboot.service"
	RestoreUnit         = "etcd-restore.service"
	RestoreDropIn       = "10-etcd-restore.conf" // of kubelet.service
	UnitDir             = "etc/systemd/system"
	Preset              = "etc/systemd/system-preset/20-ignition.preset" // written by Ignition, a line for each unit
)

// Permanent paths, relative to the root.
const (
	ImageProgram     = "usr/bin/sno-install" // of an image with the program
	ManifestDir      = "etc/kubernetes/manifests"
	ResourceDir      = "etc/kubernetes/static-pod-resources"
	EtcdData         = "var/lib/etcd"
	KubeletBootstrap = "etc/kubernetes/kubeconfig" // with which the kubelet requests its certificate
)

// Permanent paths of an all-in-one node, relative to the root.
const (
	AllInOneDir       = "var/lib/sno"
	AllInOneSettings  = AllInOneDir + "/sno-install.yaml"
	AllInOneManifests = AllInOneDir + "/manifests"
	AllInOneRendered  = AllInOneDir + "/rendered"
	AllInOneMarker    = AllInOneDir + "/installed"
)

// StatusDir is the folder of the commands' status files, in memory, relative to the root.
const StatusDir = "run/sno-install"

// Status files of commands.
const (
	NodeImageStatus  = StatusDir + "/add-node-image.json"
	LiveStatus       = StatusDir + "/bootstrap-in-place.json"
	PostRebootStatus = StatusDir + "/post-reboot.json"
	AllInOneStatus   = StatusDir + "/aiokube.json"
)

// StaticPods are the manifests of the control plane's static pods in ManifestDir, in the order of their start.
var StaticPods = []string{"etcd-pod.yaml", "kube-apiserver-pod.yaml", "kube-controller-manager-pod.yaml", "kube-scheduler-pod.yaml"}
