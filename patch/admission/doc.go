// SPDX-License-Identifier: Apache-2.0

// Package admission generates the ValidatingAdmissionPolicies of config/admission: what the account of a controller may
// change of objects of others, from the fields that its module patches.
package admission
