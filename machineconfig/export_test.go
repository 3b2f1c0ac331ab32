// SPDX-License-Identifier: Apache-2.0

package machineconfig

var ParseRequest = parseRequest
