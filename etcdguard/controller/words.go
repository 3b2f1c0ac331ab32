package controller

import (
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/apply"
)

var (
	guardWords = apply.Words{
		Subject: "The quorum guard", MadeBy: "this module",
		Resource: "deployments.apps and poddisruptionbudgets.policy in namespace " + etcdguard.Namespace,
	}
	versionWords = apply.Words{
		Subject: "The ClusterVersion", MadeBy: "the installer", Resource: "clusterversions.config.openshift.io",
	}
)

// would says what a dry run would have done.
func would(action etcdguard.Action) string {
	switch action {
	case etcdguard.Claim:
		return "the cluster-version-operator would be told to let go of the guard, and minor upgrades would wait until that is given back"
	case etcdguard.ApplyBudget, etcdguard.ApplyDeployment:
		return "the guard would be written"
	case etcdguard.TidyBudget, etcdguard.TidyDeployment:
		return "annotations of the release would be removed from the guard"
	case etcdguard.DeleteBudget, etcdguard.DeleteDeployment:
		return "the guard would be removed"
	case etcdguard.DisownBudget, etcdguard.DisownDeployment:
		return "the guard would be given back, as it is"
	case etcdguard.Unclaim:
		return "the cluster-version-operator would be allowed to write the guard again"
	case etcdguard.Nothing:
	}
	return "nothing would be written"
}
