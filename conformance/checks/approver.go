// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
)

const (
	moduleApprover    = "approver"
	approverNamespace = "openshift-cluster-machine-approver"
	approverName      = "machine-approver"
	approverConfig    = "ConfigMap " + approverNamespace + "/machine-approver-config"
	approverFile      = "config.yaml"
	approverOperator  = "ClusterOperator " + approverName
	// approverFlow is the condition by which an operator reports whether it approves client certificates. The stock
	// approver has none.
	approverFlow = "NodeClientApprovalEnabled"
	// unknownNode is in no inventory and has no Machine.
	unknownNode = "sno-conformance-unknown"
)

// CSROutcome is the result of a certificate request that must not be approved.
type CSROutcome struct{ Approved, Denied bool }

func approverAbsent(s *State) string {
	if s.Deployment(approverNamespace, approverName) == nil {
		return "the machine approver is not deployed"
	}
	return ""
}

func approverChecks() []Check {
	two := Requirement{"R-APP-2", "an approval needs two sources of truth, and a single node has no second one"}
	setConfig := func(text string) func(*Input) bool {
		return func(in *Input) bool {
			in.State.Approver = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: approverNamespace, Name: "machine-approver-config"}, Data: map[string]string{approverFile: text}}
			in.State.ApproverOperator = nil
			return true
		}
	}
	reportFlow := func(status configv1.ConditionStatus) func(*Input) bool {
		return func(in *Input) bool {
			in.State.Approver, in.State.ApproverOperator = nil, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: approverName}}
			in.State.ApproverOperator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
				{Type: approverFlow, Status: status, LastTransitionTime: metav1.Now().Rfc3339Copy()},
			}
			return true
		}
	}
	return []Check{
		{
			// Extended, as defence in depth: without a Machine the stock approver approves no client certificate
			// anyway.
			ID: "SNO-APP-001", Title: "The stock approver's flow for client certificates is off on a single control-plane node", Module: moduleApprover,
			Requirement: Requirement{"R-APP-1", "on a single control-plane node nothing is approved automatically from within the cluster"}, Level: Extended,
			Tier: Static, Topologies: []string{"SingleReplica"},
			NotApplicable: firstReason(approverAbsent, func(s *State) string {
				switch {
				case !single(s.controlPlaneMode()):
					return "the control plane is not SingleReplica"
				case s.Machines > 0:
					return "Machines exist, which are the second source"
				}
				return ""
			}),
			Run: approverOff,
			Controls: []Control{
				{Name: "the configuration turns it on", Change: setConfig("nodeClientCert:\n  disabled: false\n")},
				{Name: "no configuration", Change: func(in *Input) bool { in.State.Approver, in.State.ApproverOperator = nil, nil; return true }},
				{Name: "the operator reports that it is on", Change: reportFlow(configv1.ConditionTrue)},
				{Name: "the operator does not know whether it is on", Change: reportFlow(configv1.ConditionUnknown)},
				{Name: "the operator reports that it is off", MustPass: true, Change: reportFlow(configv1.ConditionFalse)},
				{Name: "the configuration has more fields", MustPass: true, Change: setConfig("nodeServingCert:\n  disabled: false\nnodeClientCert: {disabled: true} # why\n")},
			},
		},
		{
			ID: "SNO-APP-002", Title: "The stock approver is on where the control plane is not a single node", Module: moduleApprover,
			Requirement: Requirement{"R-SNO-12", "the approver is turned off only where there is no second source"}, Level: Core, Tier: Static,
			Topologies: []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "External"},
			NotApplicable: firstReason(approverAbsent, func(s *State) string {
				if single(s.controlPlaneMode()) {
					return "the control plane is SingleReplica"
				}
				return ""
			}),
			Run: approverOn,
			Controls: []Control{
				{Name: "the configuration turns it off", Change: setConfig("nodeClientCert:\n  disabled: true\n")},
				{Name: "no replicas", Change: onDeployment(approverNamespace, approverName, setReplicas(0))},
				{Name: "the operator reports that it is off", Change: reportFlow(configv1.ConditionFalse)},
				{Name: "the configuration turns it on", MustPass: true, Change: setConfig("nodeClientCert:\n  disabled: false\n")},
			},
		},
		{
			ID: "SNO-APP-003", Title: "A certificate request of an unknown node stays pending", Module: moduleApprover, Requirement: two, Level: Core, Tier: Scheduled,
			Needs: []string{"permission to impersonate the node bootstrapper"}, Recorded: true,
			Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
				if in.CSR == nil {
					outcome, err := in.Copier.requestCertificate(ctx)
					if err != nil {
						return nil, err
					}
					in.CSR = outcome
				}
				got := "pending"
				switch {
				case in.CSR.Approved:
					got = "approved"
				case in.CSR.Denied:
					got = "denied"
				}
				return []report.Evidence{found("CertificateSigningRequest of "+unknownNode, "status.conditions", "not approved", got, !in.CSR.Approved)}, nil
			},
			Controls: []Control{
				{Name: "the request is approved", Change: func(in *Input) bool { in.CSR.Approved = true; return true }},
				{Name: "the request is denied", MustPass: true, Change: func(in *Input) bool { in.CSR.Denied = true; return true }},
				onCluster("a client approves every request of a node"),
			},
		},
		topologyChangeCheck("SNO-APP-004", moduleApprover),
	}
}

func clientFlowOff(s *State) (bool, error) {
	if s.Approver == nil {
		return false, nil
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(s.Approver.Data[approverFile]), &config); err != nil {
		return false, fmt.Errorf("%w: %s: config.yaml is not YAML: %w", ErrRead, approverConfig, err)
	}
	off, _, err := unstructured.NestedBool(config, "nodeClientCert", "disabled")
	if err != nil {
		return false, fmt.Errorf("%w: %s: nodeClientCert.disabled: %w", ErrRead, approverConfig, err)
	}
	return off, nil
}

// reportedFlow returns the operator's condition about its flow for client certificates, or an empty string.
func reportedFlow(s *State) configv1.ConditionStatus {
	if s.ApproverOperator == nil {
		return ""
	}
	for _, c := range s.ApproverOperator.Status.Conditions {
		if c.Type == approverFlow {
			return c.Status
		}
	}
	return ""
}

// approverOff accepts an operator that decides by the topology itself, and reports that.
func approverOff(_ context.Context, in *Input) ([]report.Evidence, error) {
	if d := in.State.Deployment(approverNamespace, approverName); replicas(d) == 0 {
		return []report.Evidence{found(nameOf(d), "spec.replicas", "0", 0, true)}, nil
	}
	off, err := clientFlowOff(in.State)
	if reported := reportedFlow(in.State); reported != "" && !off && err == nil {
		held := reported == configv1.ConditionFalse
		return []report.Evidence{found(approverOperator, "status.conditions["+approverFlow+"]", string(configv1.ConditionFalse), reported, held)}, nil
	}
	return []report.Evidence{found(approverConfig, "nodeClientCert.disabled", "true", off, off)}, err
}

func approverOn(_ context.Context, in *Input) ([]report.Evidence, error) {
	d := in.State.Deployment(approverNamespace, approverName)
	off, err := clientFlowOff(in.State)
	evidence := []report.Evidence{
		found(approverConfig, "nodeClientCert.disabled", "false or not set", off, !off),
		found(nameOf(d), "spec.replicas", "at least 1", replicas(d), replicas(d) >= 1),
	}
	if reported := reportedFlow(in.State); reported != "" {
		held := reported == configv1.ConditionTrue
		evidence = append(evidence, found(approverOperator, "status.conditions["+approverFlow+"]", string(configv1.ConditionTrue), reported, held))
	}
	return evidence, err
}

// requestCertificate creates the request that a new node sends first, watches it for times.Quiet, and deletes it.
func (w *WorkloadCopier) requestCertificate(ctx context.Context) (*CSROutcome, error) {
	text, err := joinRequest()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts", "system:authenticated"},
	}
	bootstrapper, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect as the node bootstrapper: %w", err)
	}
	request, err := bootstrapper.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix, Labels: map[string]string{runLabel: w.run}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: the node bootstrapper of this cluster may not create certificatesigningrequests.certificates.k8s.io, so no node can join: "+
			"bind ClusterRole system:node-bootstrapper to its service account: %w", ErrForbidden, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a certificate request as the node bootstrapper: %w", err)
	}
	defer w.deleteRequest(ctx, request.Name)
	outcome := &CSROutcome{}
	_, err = within(ctx, w.times.Poll, w.times.Quiet, func(ctx context.Context) (bool, error) {
		live, err := w.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range live.Status.Conditions {
			outcome.Approved = outcome.Approved || condition.Type == certificatesv1.CertificateApproved
			outcome.Denied = outcome.Denied || condition.Type == certificatesv1.CertificateDenied
		}
		return outcome.Approved || outcome.Denied, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch the certificate request: %w", err)
	}
	return outcome, nil
}

// deleteRequest works after an interruption too. After a failure, the cluster deletes the request itself after a day.
func (w *WorkloadCopier) deleteRequest(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.times.Cleanup)
	defer cancel()
	_ = w.kube.CertificatesV1().CertificateSigningRequests().Delete(ctx, name, metav1.DeleteOptions{})
}

func joinRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	text, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + unknownNode, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a certificate request: %w", err)
	}
	return text, nil
}
