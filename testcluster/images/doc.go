// SPDX-License-Identifier: Apache-2.0

// Package images writes container images with static binaries: no base image, no engine, and the same digest for the
// same files. The library decides the order of images in an archive, and it varies.
package images
