// SPDX-License-Identifier: Apache-2.0

// Package auth stands in for cluster-authentication-operator: the Deployments of the OAuth server and of the OAuth API
// server with their budgets, and the well-known endpoint that every API server must serve (U-AUTH-1, U-AUTH-2,
// U-AUTH-6). There are no certificates, configuration or routes.
package auth
