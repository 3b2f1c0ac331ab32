package etcdguard

import "github.com/solonode/sno/patch/unsupportedconfig"

// ErrOverride is returned for a spec.unsupportedConfigOverrides, or an OverrideKey in it, that cannot be understood. Somebody
// wanted something there, so it never counts as false.
var ErrOverride = unsupportedconfig.ErrUnreadable

// Override is what spec.unsupportedConfigOverrides of the Etcd says about OverrideKey. The zero Override is its absence.
type Override unsupportedconfig.Switch

// Deprecation is one stable sentence about an override that is present, empty otherwise.
func (o Override) Deprecation() string { return unsupportedconfig.Switch(o).Deprecation(OverrideKey) }

// ReadOverride reads OverrideKey from the raw bytes of spec.unsupportedConfigOverrides in every form that the operator accepts,
// as unsupportedconfig.Read does. What cannot be understood is an ErrOverride that names the field.
func ReadOverride(raw []byte) (Override, error) {
	override, _, err := unsupportedconfig.Read(raw, OverrideKey)
	return Override(override), err
}
