package controller

import (
	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/apply"
)

// What is said about each of the objects.
var (
	versionWords = apply.Words{
		Subject:     "The ClusterVersion",
		MadeBy:      "the cluster-version-operator",
		Resource:    "clusterversions.config.openshift.io",
		WouldApply:  "the cluster-version-operator would be told to let go of downloads",
		Progressing: console.ReasonTakingOver,
	}
	downloadsWords = deploymentWords("downloads")
	consoleWords   = deploymentWords("console")
)

func deploymentWords(which string) apply.Words {
	return apply.Words{
		Subject:    "The " + which + " Deployment",
		MadeBy:     "its operator",
		Resource:   "deployments.apps in namespace " + console.Namespace,
		WouldApply: "the " + which + " Deployment would run one replica that can roll on one node",
	}
}
