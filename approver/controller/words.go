package controller

import (
	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch/apply"
)

// What is said about each of the objects.
var (
	configWords = apply.Words{
		Subject: "The configuration of the stock approver", MadeBy: "this module",
		Resource: "configmaps in namespace " + approver.Namespace, Progressing: approver.ReasonRestarting,
	}
	deploymentWords = apply.Words{
		Subject: "The stock approver", MadeBy: "the cluster-version-operator",
		Resource: "deployments.apps in namespace " + approver.Namespace, Progressing: approver.ReasonRestarting,
	}
	versionWords = apply.Words{
		Subject: "The ClusterVersion", MadeBy: "the installer", Resource: "clusterversions.config.openshift.io", Progressing: approver.ReasonTakingOver,
	}
)

// wordsOf are those about the object that the action writes.
func wordsOf(action approver.Action) apply.Words {
	words := deploymentWords
	switch action {
	case approver.ApplyConfig, approver.RestoreConfig, approver.DeleteConfig:
		words = configWords
	case approver.Claim, approver.Unclaim:
		words = versionWords
	case approver.Nothing, approver.ApplyDeployment, approver.ReleaseDeployment:
	}
	words.WouldApply = would(action)
	return words
}

// would says what a dry run would have done.
func would(action approver.Action) string {
	switch action {
	case approver.ApplyConfig:
		return "the node-client flow would be disabled in the configuration of the stock approver"
	case approver.RestoreConfig, approver.DeleteConfig:
		return "the configuration of the stock approver would be given back"
	case approver.ApplyDeployment:
		return "the stock approver would be restarted or turned off"
	case approver.ReleaseDeployment:
		return "the stock approver would be given back"
	case approver.Claim:
		return "the cluster-version-operator would be told to let go of the stock approver"
	case approver.Unclaim:
		return "the cluster-version-operator would be allowed to write the stock approver again"
	case approver.Nothing:
	}
	return "nothing would be written"
}
