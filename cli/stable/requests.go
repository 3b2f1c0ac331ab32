package stable

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// requests looks at what nodes ask for. What others ask for is their business and may wait for ever.
func (r *Report) requests(s *State) {
	signers := []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName}
	for i := range s.Requests {
		request := &s.Requests[i]
		if !slices.Contains(signers, request.Spec.SignerName) {
			continue
		}
		object := name(kindRequest, request)
		r.mark(object, request.UID)
		switch {
		case has(request, certificatesv1.CertificateDenied), has(request, certificatesv1.CertificateFailed), len(request.Status.Certificate) > 0:
		case has(request, certificatesv1.CertificateApproved):
			r.moving(object, request.CreationTimestamp, "it is approved and not signed yet")
		default:
			r.moving(object, request.CreationTimestamp, "nobody has approved it; on a single node that is left to a person or an outside tool")
		}
	}
}

func has(request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind
	})
}
