// SPDX-License-Identifier: Apache-2.0

package topology

func (r Reading) Empty() bool   { return r.empty() }
func (r Reading) Unknown() bool { return r.unknown() }
