// SPDX-License-Identifier: Apache-2.0

package requests

// Reasons of a verdict. docs/approver.md explains them.
const (
	ReasonProvenByInventory   = "ProvenByInventory"
	ReasonProvenByCertificate = "ProvenByCertificate"

	ReasonInputsIncomplete = "InputsIncomplete"
	ReasonTooLarge         = "TooLarge"
	ReasonNotPEM           = "NotPEM"
	ReasonPEMType          = "PEMType"
	ReasonPEMSurplus       = "PEMSurplus"
	ReasonMalformed        = "Malformed"
	ReasonKeyTooLarge      = "KeyTooLarge"
	ReasonBadSignature     = "BadSignature"
	ReasonOtherSigner      = "OtherSigner"

	ReasonAlreadyDecided       = "AlreadyDecided"
	ReasonRequestorWrong       = "RequestorWrong"
	ReasonRenewalByNode        = "RenewalByNode"
	ReasonGroupsWrong          = "GroupsWrong"
	ReasonUsagesWrong          = "UsagesWrong"
	ReasonSubjectWrong         = "SubjectWrong"
	ReasonContentsWrong        = "ContentsWrong"
	ReasonKeyWeak              = "KeyWeak"
	ReasonSignatureWeak        = "SignatureWeak"
	ReasonRequestTooOld        = "RequestTooOld"
	ReasonRequestFromTheFuture = "RequestFromTheFuture"
	ReasonValidityTooLong      = "ValidityTooLong"
	ReasonNodesUnknown         = "NodesUnknown"

	ReasonNotInInventory        = "NotInInventory"
	ReasonNoWindow              = "NoWindow"
	ReasonWindowNotOpen         = "WindowNotOpen"
	ReasonWindowClosed          = "WindowClosed"
	ReasonRequestedBeforeWindow = "RequestedBeforeWindow"
	ReasonNodeExists            = "NodeExists"
	ReasonApprovalsUnknown      = "ApprovalsUnknown"
	ReasonCountUsedUp           = "CountUsedUp"

	ReasonNodeMissing    = "NodeMissing"
	ReasonNoNames        = "NoNames"
	ReasonNamesNotPlain  = "NamesNotPlain"
	ReasonNamesNotProven = "NamesNotProven"
)
