// SPDX-License-Identifier: Apache-2.0

package etcdguard_test
